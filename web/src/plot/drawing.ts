// A chart as uPlot draws it: options, data and colors.

import uPlot from 'uplot';
import { tickTexts, type Span } from './ranges';
import { hasBand, isolated, withGaps, type Answer, type Chart } from './series';
import { tickText } from '../base/units';

const LIGHT = ['#1e66c9', '#b3470b', '#1a7f4b', '#8a3ba8', '#9a6700', '#0b7a89', '#c2261c', '#5b6470'];
const DARK = ['#6cb0ff', '#ff9e64', '#4cc38a', '#d59bf0', '#e0b04c', '#5ccfdd', '#ff7b70', '#98a1ad'];
const HEIGHT = 220;
const NOWHERE: [number, number] = [-10, -10]; // no crosshair
const POINT = 7; // pixels of a point at the crosshair

/** A point at the crosshair; the edges of bands have none, because each is a layer that the browser moves. */
function pointElement(): HTMLElement {
  const point = document.createElement('div');
  Object.assign(point.style, { width: `${POINT}px`, height: `${POINT}px`, marginLeft: `${-POINT / 2}px`, marginTop: `${-POINT / 2}px` });
  return point;
}

let scheme: MediaQueryList | undefined;
export const dark = (): MediaQueryList => (scheme ??= matchMedia('(prefers-color-scheme: dark)'));

/** Return the color of the line `at`. */
export function colorOf(at: number): string {
  const colors = dark().matches ? DARK : LIGHT;
  return colors[at % colors.length] ?? '#888888';
}

/** Return a color of base.css, such as --muted. */
export function styleColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Return the range of an axis that shows `level`, too, if it is not null; numbers that are all equal are in its middle. */
function aroundOf(least: number | null, greatest: number | null, level: number | null): uPlot.Range.MinMax {
  if (least === null || greatest === null) return [0, 1];
  const low = Math.min(least, level ?? least), high = Math.max(greatest, level ?? greatest);
  const margin = (high - low) * 0.08 || Math.abs(low) * 0.02 || 1;
  return [low - margin, high + margin];
}

export interface Actions {
  /** The user has selected a range, in milliseconds since 1970. Without it, none can be selected. */
  readonly zoom?: (from: number, to: number) => void;
  readonly back: () => void;
  /** The crosshair is at the bucket `at`; null if it is nowhere. */
  readonly point: (at: number | null) => void;
  /** Returns a number that the axis shows, too; null for none. */
  readonly level?: () => number | null;
  /** Returns the range that is shown; without it, that of the answer. */
  readonly view?: () => Span | null;
  /** The chart has been drawn, at first or again. */
  readonly drawn?: (chart: uPlot) => void;
}

/** Return the data: times in seconds, then for each line the mean and, if it has a band, greatest and least. */
export function dataOf(chart: Chart, answer: Answer): uPlot.AlignedData {
  const columns = chart.lines.flatMap(({ field }) => [field.mean, ...(hasBand(field) ? [field.max, field.min] : [])].map(withGaps));
  return [answer.times.map((time) => time / 1000), ...columns];
}

/** How a chart is drawn, as text: charts with the same text differ only in their numbers. */
export function shapeOf(chart: Chart): string {
  return JSON.stringify([chart.unit.symbol, chart.lines.map(({ name, field }) => [name, field.boolean, field.color, hasBand(field)])]);
}

/** A chart on the page. */
export interface Drawing {
  readonly plot: uPlot;
  /** Show other numbers; the chart must have the same shape. */
  readonly update: (chart: Chart, answer: Answer) => void;
  /** Show the range that `view` returns now, with the numbers that are there. */
  readonly move: () => void;
  /** While it is held, moves shift a picture of the lines, with the same vertical axis: that is much less to draw. */
  readonly hold: (held: boolean) => void;
}

/** A chart as a picture, and the axes for which it was drawn. */
interface Held { readonly picture: HTMLCanvasElement; readonly from: number; readonly y: uPlot.Range.MinMax }

/** Return what a chart shows now as a picture, null without axes. */
function taken({ ctx: { canvas }, scales: { x, y } }: uPlot): Held | null {
  if (x?.min == null || y?.min == null || y.max == null) return null;
  const picture = canvas.cloneNode() as HTMLCanvasElement;
  picture.getContext('2d')?.drawImage(canvas, 0, 0);
  return { picture, from: x.min, y: [y.min, y.max] };
}

/** Draw the picture where its numbers are now: whole pixels are copied as they are. */
function shift(self: uPlot, { picture, from }: Held): void {
  const { ctx, bbox: { left, top, width, height } } = self;
  const by = Math.round(self.valToPos(from, 'x', true) - left), rest = width - Math.abs(by);
  ctx.clearRect(left, top, width, height);
  if (rest > 0) ctx.drawImage(picture, left + Math.max(-by, 0), top, rest, height, left + Math.max(by, 0), top, rest, height);
}

/** Draw a chart into `target`, as wide as it. */
export function draw(target: HTMLElement, chart: Chart, answer: Answer, actions: Actions): Drawing {
  let current = answer;
  const alone: number[][] = [];
  const isolate = (shown: Chart): void => { shown.lines.forEach(({ field }, at) => { alone[at] = isolated(withGaps(field.mean)); }); };
  isolate(chart);
  const data = dataOf(chart, answer);
  const range = (): uPlot.Range.MinMax => {
    const { from, to } = actions.view?.() ?? { from: current.from ?? 0, to: current.to ?? 1 };
    return [from / 1000, to / 1000];
  };
  let held: Held | null = null;
  const straight = uPlot.paths.linear?.(), stepped = uPlot.paths.stepped?.({ align: 1 });
  const pathsOf = (boolean: boolean): uPlot.Series.PathBuilder => (self, at, first, last) => (held ? null : (boolean ? stepped : straight)?.(self, at, first, last) ?? null);
  const series: uPlot.Series[] = [{}], bands: uPlot.Band[] = [], edges = new Set<number>();
  chart.lines.forEach(({ field }, at) => {
    const color = colorOf(field.color ?? at), paths = pathsOf(field.boolean);
    series.push({
      stroke: color, width: 1.5, paths,
      points: { size: 5, fill: color, filter: (_self, _series, show) => (show ? null : alone[at] ?? []) },
    });
    if (!hasBand(field)) return;
    const edge: uPlot.Series = { stroke: `${color}00`, width: 0, points: { show: false }, paths };
    bands.push({ series: [series.length, series.length + 1], fill: `${color}40` });
    edges.add(series.length).add(series.length + 1);
    series.push(edge, edge);
  });
  const axis = { stroke: styleColor('--muted'), grid: { stroke: styleColor('--line'), width: 1 }, ticks: { stroke: styleColor('--line'), width: 1, size: 4 }, font: '12px system-ui, sans-serif' };
  const allBoolean = chart.lines.every(({ field }) => field.boolean);
  const yRange: uPlot.Range.MinMax = [-0.1, 1.1];
  const plot = new uPlot({
    width: target.clientWidth,
    height: HEIGHT,
    series, bands,
    padding: [8, 20, 0, 0], // half a text of the time axis at the right
    legend: { show: false },
    scales: {
      x: { time: answer.xText === undefined, range },
      y: allBoolean ? { range: yRange } : { range: (_self, low, high) => held?.y ?? aroundOf(low, high, actions.level?.() ?? null) },
    },
    axes: [
      { ...axis, space: 90, size: 44, values: (_self, ticks, _axis, _space, step) => current.xText ? ticks.map((tick) => current.xText?.(tick * 1000, step * 1000) ?? '') : tickTexts(ticks.map((tick) => tick * 1000), step * 1000) },
      { ...axis, size: 64, values: (_self, ticks) => ticks.map((tick) => (allBoolean && !Number.isInteger(tick) ? '' : tickText(tick, chart.unit))), ...(chart.unit.symbol ? { label: chart.unit.symbol, labelSize: 20, labelFont: axis.font, labelGap: 0 } : {}) },
    ],
    cursor: {
      y: false,
      move: (_self, left, top) => (held ? NOWHERE : [left, top]),
      points: { show: ((_self, at) => (edges.has(at) ? null : pointElement())) as uPlot.Cursor.Points.Show }, // uPlot takes null, too
      sync: { key: 'plots', filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave', sub: () => true } }, // not the selection
      drag: { x: actions.zoom !== undefined, y: false, setScale: false },
      bind: { dblclick: () => () => { actions.back(); return null; } },
    },
    hooks: {
      setSelect: [(self) => {
        const { left, width } = self.select;
        if (width < 3) return;
        self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        actions.zoom?.(self.posToVal(left, 'x') * 1000, self.posToVal(left + width, 'x') * 1000);
      }],
      setCursor: [(self) => { actions.point(self.cursor.idx ?? null); }],
      drawAxes: [(self) => { if (held) shift(self, held); }],
      draw: [(self) => { actions.drawn?.(self); }],
      setSize: [() => { held = null; }],
    },
  }, data, target);
  return {
    plot,
    update: (next, nextAnswer) => {
      current = nextAnswer;
      isolate(next);
      held = null;
      plot.setData(dataOf(next, nextAnswer));
    },
    move: () => {
      const [min, max] = range();
      plot.setScale('x', { min: min ?? 0, max: max ?? 1 });
    },
    hold: (now) => {
      if (!now && !held) return;
      held = now ? taken(plot) : null;
      if (now) plot.setCursor({ left: NOWHERE[0], top: NOWHERE[1] }); // the legend would change with each move
      else plot.redraw();
    },
  };
}

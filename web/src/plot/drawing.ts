// A chart as uPlot draws it: options, data and colors.

import uPlot from 'uplot';
import { tickTexts } from './ranges';
import { hasBand, isolated, withGaps, type Answer, type Chart } from './series';
import { numberText } from '../base/units';

const LIGHT = ['#1e66c9', '#b3470b', '#1a7f4b', '#8a3ba8', '#9a6700', '#0b7a89', '#c2261c', '#5b6470'];
const DARK = ['#6cb0ff', '#ff9e64', '#4cc38a', '#d59bf0', '#e0b04c', '#5ccfdd', '#ff7b70', '#98a1ad'];
const HEIGHT = 220;

export const dark = (): MediaQueryList => matchMedia('(prefers-color-scheme: dark)');

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
  /** The chart has been drawn, at first or again. */
  readonly drawn?: (chart: uPlot) => void;
}

/** Return the data: times in seconds, then for each line the mean and, if it has a band, greatest and least. */
export function dataOf(chart: Chart, answer: Answer): uPlot.AlignedData {
  const columns = chart.lines.flatMap(({ field }) => [field.mean, ...(hasBand(field) ? [field.max, field.min] : [])].map(withGaps));
  return [answer.times.map((time) => time / 1000), ...columns];
}

/** Draw a chart into `target`, as wide as it. */
export function draw(target: HTMLElement, chart: Chart, answer: Answer, actions: Actions): uPlot {
  const data = dataOf(chart, answer);
  const series: uPlot.Series[] = [{}], bands: uPlot.Band[] = [];
  chart.lines.forEach(({ field }, at) => {
    const color = colorOf(field.color ?? at), stepped = field.boolean ? uPlot.paths.stepped?.({ align: 1 }) : undefined;
    const alone = isolated(withGaps(field.mean));
    series.push({
      stroke: color, width: 1.5, ...(stepped ? { paths: stepped } : {}),
      points: { size: 5, fill: color, filter: (_self, _series, show) => (show ? null : alone) },
    });
    if (!hasBand(field)) return;
    const edge: uPlot.Series = { stroke: `${color}00`, width: 0, points: { show: false }, ...(stepped ? { paths: stepped } : {}) };
    bands.push({ series: [series.length, series.length + 1], fill: `${color}40` });
    series.push(edge, edge);
  });
  const axis = { stroke: styleColor('--muted'), grid: { stroke: styleColor('--line'), width: 1 }, ticks: { stroke: styleColor('--line'), width: 1, size: 4 }, font: '12px system-ui, sans-serif' };
  const allBoolean = chart.lines.every(({ field }) => field.boolean);
  const yRange: uPlot.Range.MinMax = [-0.1, 1.1];
  return new uPlot({
    width: target.clientWidth,
    height: HEIGHT,
    series, bands,
    padding: [8, 20, 0, 0], // half a text of the time axis at the right
    legend: { show: false },
    scales: {
      x: { time: answer.xText === undefined, range: () => [(answer.from ?? 0) / 1000, (answer.to ?? 1) / 1000] },
      y: allBoolean ? { range: yRange } : { range: (_self, low, high) => aroundOf(low, high, actions.level?.() ?? null) },
    },
    axes: [
      { ...axis, space: 90, size: 44, values: (_self, ticks, _axis, _space, step) => answer.xText ? ticks.map((tick) => answer.xText?.(tick * 1000, step * 1000) ?? '') : tickTexts(ticks.map((tick) => tick * 1000), step * 1000) },
      { ...axis, size: 64, values: (_self, ticks) => ticks.map((tick) => (allBoolean && !Number.isInteger(tick) ? '' : numberText(tick))), ...(chart.unit.symbol ? { label: chart.unit.symbol, labelSize: 20, labelFont: axis.font, labelGap: 0 } : {}) },
    ],
    cursor: {
      y: false,
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
      draw: [(self) => { actions.drawn?.(self); }],
    },
  }, data, target);
}

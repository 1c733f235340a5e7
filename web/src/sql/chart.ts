// An answer as a chart: columns for the axes, lines by the values of a column of texts. Pure.

import type { Answer as Plotted, Chart, Field, Line } from '../plot/series';
import { numberText, unitOf } from '../base/units';
import { whole, type Answer, type Kind, type Value } from './answer';

/** Numbers of the columns of the axes; `x` is null for the number of the row, `by` null for lines by columns only. */
export interface Axes {
  readonly x: number | null;
  readonly y: readonly number[];
  readonly by: number | null;
}

export const MOST_LINES = 24;
const FIRST = 6; // lines by columns at first

const ofKind = (answer: Answer, ...kinds: Kind[]): number[] => answer.columns.flatMap((column, at) => (kinds.includes(column.kind) ? [at] : []));
export const xColumns = (answer: Answer): number[] => ofKind(answer, 'time', 'number');
export const yColumns = (answer: Answer): number[] => ofKind(answer, 'number', 'boolean');
export const byColumns = (answer: Answer): number[] => ofKind(answer, 'text');

const nameOf = (value: Value): string => (value === null ? 'nothing' : whole(value));

/** Return the axes to begin with: the first time against numbers, else the first number, a line for each text if times repeat. */
export function axesOf(answer: Answer): Axes {
  const numbers = ofKind(answer, 'number');
  const x = ofKind(answer, 'time')[0] ?? (numbers.length > 1 ? numbers[0] ?? null : null);
  const y = numbers.filter((at) => at !== x).slice(0, FIRST);
  const by = byColumns(answer).find((at) => {
    const names = new Set(answer.rows.map((row) => nameOf(row[at] ?? null)));
    return names.size > 1 && names.size <= MOST_LINES;
  }) ?? null;
  const repeats = x !== null && new Set(answer.rows.map((row) => row[x])).size < answer.rows.length;
  return { x, y, by: repeats ? by : null };
}

/** A chart to draw; `more` is the number of lines that are left out. */
export interface Drawing {
  readonly chart: Chart;
  readonly answer: Plotted;
  readonly more: number;
}

/** Return the charts: columns with the same unit share one, and so do those without. */
export function plotted(answer: Answer, axes: Axes): Drawing[] {
  const symbolOf = (at: number): string => unitOf(answer.columns[at]?.name ?? '').symbol;
  const symbols = [...new Set(axes.y.map(symbolOf))];
  const charts = symbols.flatMap((symbol) => drawingOf(answer, { ...axes, y: axes.y.filter((at) => symbolOf(at) === symbol) }, symbol) ?? []);
  const from = Math.min(...charts.map((each) => each.answer.from ?? 0)), to = Math.max(...charts.map((each) => each.answer.to ?? 0));
  return charts.map((each) => ({ ...each, answer: within(each.answer, from, to) }));
}

function drawingOf(answer: Answer, axes: Axes, symbol: string): Drawing | null {
  const { x, y, by } = axes;
  const isTime = x !== null && answer.columns[x]?.kind === 'time';
  const lines = new Map<string, Map<number, number[]>>();
  const name = (column: number, row: readonly Value[]): string => {
    const words = [...(y.length > 1 || by === null ? [answer.columns[column]?.name ?? ''] : []), ...(by === null ? [] : [nameOf(row[by] ?? null)])];
    return words.join(' ');
  };
  answer.rows.forEach((row, number) => {
    const at = x === null ? (number + 1) * 1000 : row[x];
    if (typeof at !== 'number') return;
    const place = x === null || isTime ? at : at * 1000;
    for (const column of y) {
      const value = row[column];
      if (typeof value !== 'number' && typeof value !== 'boolean') continue;
      const key = name(column, row);
      const line = lines.get(key) ?? new Map<number, number[]>();
      lines.set(key, line);
      const values = line.get(place);
      if (values) values.push(Number(value));
      else line.set(place, [Number(value)]);
    }
  });
  const shown = [...lines].slice(0, MOST_LINES);
  const times = [...new Set(shown.flatMap(([, line]) => [...line.keys()]))].sort((a, b) => a - b);
  const first = times[0], last = times.at(-1);
  if (first === undefined || last === undefined) return null;
  const distances = times.slice(1).map((time, at) => time - (times[at] ?? 0));
  const step = Math.max(1, distances.reduce((a, b) => Math.min(a, b), Infinity));
  const boolean = y.every((at) => answer.columns[at]?.kind === 'boolean');
  const title = y.map((at) => answer.columns[at]?.name ?? '').join(', ');
  const margin = first === last ? 500 : 0;
  return {
    chart: { key: symbol, title, unit: { symbol, name: title }, lines: shown.map(([each, line]): Line => ({ name: each, field: fieldOf(each, line, times, boolean) })) },
    answer: {
      from: first - margin, to: last + margin, step: Number.isFinite(step) ? step : 1, times, sampled: false, more: false, series: [],
      ...(isTime ? {} : { xText: (value: number) => numberText(value / 1000) }),
    },
    more: lines.size - shown.length,
  };
}

function fieldOf(name: string, line: ReadonlyMap<number, readonly number[]>, times: readonly number[], boolean: boolean): Field {
  const values = times.map((time) => line.get(time) ?? []);
  const each = (of: (numbers: readonly number[]) => number): (number | null)[] => values.map((numbers) => (numbers.length > 0 ? of(numbers) : null));
  const last = [...line].reduce((a, b) => (b[0] >= a[0] ? b : a));
  return {
    name, boolean,
    min: each((numbers) => Math.min(...numbers)),
    max: each((numbers) => Math.max(...numbers)),
    mean: each((numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length),
    count: values.map((numbers) => numbers.length),
    last: { time: last[0], value: last[1].at(-1) ?? 0 },
  };
}

/** Return the axes of a range, for zooming. */
export function within(answer: Plotted, from: number, to: number): Plotted {
  return { ...answer, from, to };
}


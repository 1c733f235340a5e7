// The answer of GET /data/series, which docs/howto/cloud-data.md describes, and its arrangement as charts. Pure.

import { unitOf, type Unit } from '../base/units';

type Numbers = readonly (number | null)[];

export interface Field {
  readonly name: string;
  /** Words for people; the name without them. */
  readonly label?: string;
  /** The title of the chart that shows the field, with others of the same; the unit decides without it. */
  readonly chart?: string;
  /** The number of a color; without it, that of the line in its chart. */
  readonly color?: number;
  readonly boolean: boolean;
  readonly min: Numbers;
  readonly max: Numbers;
  readonly mean: Numbers;
  readonly count: readonly number[];
  readonly last: { readonly time: number; readonly value: number };
}

export interface Source {
  readonly machine: string;
  readonly part: string;
  readonly component: string;
  readonly method: string;
  readonly tags: readonly string[];
  readonly sampled: boolean;
  readonly others: readonly string[];
  readonly fields: readonly Field[];
}

/** Times are in milliseconds since 1970; `times` are the starts of buckets of `step` milliseconds. */
export interface Answer {
  readonly from: number | null;
  readonly to: number | null;
  readonly step: number | null;
  readonly times: readonly number[];
  readonly sampled: boolean;
  readonly more: boolean;
  readonly series: readonly Source[];
  /** The text of a place on the horizontal axis, if that is not time. */
  readonly xText?: (value: number, step: number) => string;
}

/** A line of a chart: a field of a source. */
export interface Line {
  readonly name: string;
  readonly field: Field;
}

/** Lines that share an axis: fields with the same unit, or, without a known unit, of the same name. */
export interface Chart {
  readonly key: string;
  readonly title: string;
  readonly unit: Unit;
  readonly lines: readonly Line[];
}

const PREFIX = 'readings.';

/** Parse an answer; throws a TypeError if it is not one. */
export function answerOf(value: unknown): Answer {
  if (typeof value !== 'object' || value === null || !('series' in value) || !Array.isArray(value.series)) throw new TypeError('the answer has no series');
  return value as Answer;
}

/** Name each source by what distinguishes it from the others, at least by its component. */
function namesOf(sources: readonly Source[]): string[] {
  const parts = sources.map((source) => [source.machine, source.part, source.component, source.method, source.tags.join(' ')]);
  const differs = [0, 1, 2, 3, 4].filter((at) => at === 2 || new Set(parts.map((each) => each[at])).size > 1);
  return parts.map((each) => differs.map((at) => each[at]).filter(Boolean).join(' · '));
}

/** Arrange the fields of an answer as charts, in the order of the answer. */
export function chartsOf(answer: Answer): Chart[] {
  const names = namesOf(answer.series);
  const lines = new Map<string, { title: string; unit: Unit; lines: Line[] }>();
  answer.series.forEach((source, at) => {
    for (const field of source.fields) {
      const path = field.name.startsWith(PREFIX) ? field.name.slice(PREFIX.length) : field.name;
      const unit = field.boolean || field.chart !== undefined ? { symbol: '', name: field.chart ?? path } : unitOf(path);
      const key = unit.symbol ? `unit ${unit.symbol}` : `field ${field.chart ?? path}`;
      const chart = lines.get(key) ?? { title: unit.name, unit, lines: [] };
      chart.lines.push({ name: `${names[at] ?? ''} ${field.label ?? path}`.trim(), field });
      lines.set(key, chart);
    }
  });
  return [...lines].map(([key, chart]) => ({
    key, ...chart, title: chart.lines.every((line) => line.name === chart.lines[0]?.name) ? chart.lines[0]?.name ?? '' : chart.title,
  }));
}

const TWO_COLUMNS = 992; // pixels of the page in which two charts fit side by side

/** Return the number of buckets for plots that are `width` pixels wide together: at most one for each pixel of a chart. */
export function pointsOf(width: number, charts: number | null): number {
  const columns = width >= TWO_COLUMNS && charts !== 1 ? 2 : 1;
  return Math.min(Math.max(Math.round(width / columns), 200), 2000);
}

const SPARSE = 3; // times the usual distance between numbers is a gap

/**
 * Return numbers as uPlot draws them: null interrupts the line, undefined does not. A bucket without numbers interrupts
 * the line only in a gap that is longer than usual, because a source may have fewer readings than there are buckets.
 */
export function withGaps(numbers: Numbers): (number | null | undefined)[] {
  const present = numbers.flatMap((value, at) => (value === null ? [] : [at]));
  const distances = present.slice(1).map((at, index) => at - (present[index] ?? 0)).sort((a, b) => a - b);
  const usual = distances[Math.floor(distances.length / 2)] ?? 1;
  const drawn: (number | null | undefined)[] = [...numbers];
  present.slice(1).forEach((at, index) => {
    const before = present[index] ?? 0;
    if (at - before <= SPARSE * usual) drawn.fill(undefined, before + 1, at);
  });
  return drawn;
}

/** Return the indexes of numbers with a gap on both sides, which a line does not show. */
export function isolated(drawn: readonly (number | null | undefined)[]): number[] {
  const gap = (from: number, by: number): boolean => {
    let at = from + by;
    while (at >= 0 && at < drawn.length && drawn[at] === undefined) at += by;
    return drawn[at] === null || drawn[at] === undefined;
  };
  return drawn.flatMap((value, at) => (typeof value === 'number' && gap(at, -1) && gap(at, 1) ? [at] : []));
}

/** Whether any bucket of a field has different numbers, so that a band is drawn. */
export function hasBand(field: Field): boolean {
  return field.min.some((least, at) => least !== field.max[at]);
}

/** Return the least and the greatest number, and how many there are; null if there are none. */
export function extremes(field: Field): { low: number; high: number; count: number } | null {
  let low = Infinity, high = -Infinity, count = 0;
  field.count.forEach((each, at) => {
    count += each;
    low = Math.min(low, field.min[at] ?? Infinity);
    high = Math.max(high, field.max[at] ?? -Infinity);
  });
  return count > 0 ? { low, high, count } : null;
}

/** Return the index of the next bucket with a number from `at` in a direction; `at` if there is none. */
export function nextIndex(chart: Chart, at: number, by: 1 | -1, length: number): number {
  for (let index = at + by; index >= 0 && index < length; index += by) {
    if (chart.lines.some((line) => (line.field.count[index] ?? 0) > 0)) return index;
  }
  return at;
}

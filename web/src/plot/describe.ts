// Charts in words, for people who do not see them. Pure.

import { timeText } from './ranges';
import { extremes, type Chart } from './series';
import { quantity } from '../base/units';

/** Describe a whole chart by its numbers; `place` is the text of a place on its axis. */
export function description(chart: Chart, from: number, to: number, step: number, place = timeText): string {
  const lines = chart.lines.map(({ name, field }) => {
    const all = extremes(field);
    if (all === null) return `${name}: no numbers`;
    const { low, high, count } = all;
    return `${name}: ${count} ${count === 1 ? 'number' : 'numbers'} from ${quantity(low, chart.unit)} to ${quantity(high, chart.unit)}, last ${quantity(field.last.value, chart.unit)}`;
  });
  return `${place(from, step)} to ${place(to, step)}. ${lines.join('. ')}`;
}

/** Describe the numbers of the bucket `at`. */
export function bucketText(chart: Chart, times: readonly number[], at: number, step: number, place = timeText): string {
  const lines = chart.lines.map(({ name, field }) => {
    const mean = field.mean[at] ?? null, least = field.min[at] ?? null, greatest = field.max[at] ?? null;
    if (mean === null || least === null || greatest === null) return `${name}: nothing`;
    return least === greatest ? `${name}: ${quantity(mean, chart.unit)}` : `${name}: ${quantity(mean, chart.unit)}, from ${quantity(least, chart.unit)} to ${quantity(greatest, chart.unit)}`;
  });
  return `${place(times[at] ?? 0, step)}. ${lines.join('. ')}`;
}

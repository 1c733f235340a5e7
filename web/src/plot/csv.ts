// The numbers of charts as CSV (RFC 4180). Pure.

import type { Chart } from './series';

/** Quote a name where needed; one that a spreadsheet would take for a formula is prefixed with '. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Return a row for each bucket with numbers: its start in UTC, and mean, min, max and count of each line. */
export function csvOf(charts: readonly Chart[], times: readonly number[]): string {
  const lines = charts.flatMap((chart) => chart.lines);
  const head = ['time', ...lines.flatMap(({ name }) => ['mean', 'min', 'max', 'count'].map((what) => cell(`${name} ${what}`)))];
  const rows = times.flatMap((time, at) => {
    if (!lines.some(({ field }) => (field.count[at] ?? 0) > 0)) return [];
    const numbers = lines.flatMap(({ field }) => [field.mean[at], field.min[at], field.max[at], field.count[at]].map((value) => value ?? ''));
    return [[new Date(time).toISOString(), ...numbers]];
  });
  return [head, ...rows].map((row) => `${row.join(',')}\r\n`).join('');
}

// Ranges of time, and times as text in the time zone of the browser. Pure.

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

/** Times in milliseconds since 1970. */
export interface Span { readonly from: number; readonly to: number }

/** What a plot shows: the range that the server chooses, a range, or the time until now of a length. */
type FixedRange = { readonly kind: 'fixed' } & Span;
export type Range = { readonly kind: 'default' } | FixedRange | { readonly kind: 'now'; readonly length: number };

export const LENGTHS: readonly (readonly [string, number])[] = [
  ['5 min', 5 * MINUTE], ['1 h', HOUR], ['24 h', DAY], ['7 d', 7 * DAY], ['30 d', 30 * DAY], ['1 y', 365 * DAY],
];

const SHORTEST = 10; // milliseconds
const RECENT = 10 * MINUTE;

/** Return a fixed range, at least SHORTEST long. */
export function fixed(from: number, to: number): FixedRange {
  const [first, last] = from < to ? [from, to] : [to, from];
  return { kind: 'fixed', from: first, to: Math.max(last, first + SHORTEST) };
}

/** Return the times to request, null for those that the server chooses. */
export function spanAt(range: Range, now: number): Span | null {
  if (range.kind === 'default') return null;
  return range.kind === 'fixed' ? { from: range.from, to: range.to } : { from: now - range.length, to: now };
}

/** Return the range after a move by a part of its length, such as -0.5. */
export function moved(span: Span, by: number): FixedRange {
  const distance = (span.to - span.from) * by;
  return fixed(span.from + distance, span.to + distance);
}

/** Return the range whose length is `factor` times that of `span`, around its middle. */
export function scaled(span: Span, factor: number): FixedRange {
  const middle = (span.from + span.to) / 2, half = ((span.to - span.from) * factor) / 2;
  return fixed(middle - half, middle + half);
}

/** Whether a range follows the time: it ends now, or the server's range ends with readings that arrive now. */
export function isLive(range: Range, newest: number | null, now: number): boolean {
  return range.kind === 'now' || (range.kind === 'default' && newest !== null && now - newest < RECENT);
}

/** Return how long to wait before a live range is requested again: the length of a bucket, 3 s to 60 s. */
export function pauseOf(step: number | null): number {
  return Math.min(Math.max(step ?? 0, 3 * SECOND), 60 * SECOND);
}

/** Return a range as a query with whole minutes in UTC around it, as forms of pages have them. */
export function utcMinutes(span: Span): string {
  const text = (time: number): string => new Date(time).toISOString().slice(0, 16);
  return new URLSearchParams({ from: text(span.from), to: text(Math.ceil(span.to / MINUTE) * MINUTE) }).toString();
}

const two = (value: number): string => String(value).padStart(2, '0');
const dayOf = (time: Date): string => `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;

/** Return a local time, as precise as a step in milliseconds needs. */
export function timeText(time: number, step: number): string {
  const moment = new Date(time);
  if (step >= DAY) return dayOf(moment);
  const seconds = step < MINUTE ? `:${two(moment.getSeconds())}` : '';
  const rest = step < SECOND ? `.${String(moment.getMilliseconds()).padStart(3, '0')}` : '';
  return `${dayOf(moment)} ${two(moment.getHours())}:${two(moment.getMinutes())}${seconds}${rest}`;
}

/** Return texts of ticks at times in milliseconds, `step` apart: month and day are in a second line where the day begins. */
export function tickTexts(times: readonly number[], step: number): string[] {
  let before = '';
  return times.map((time) => {
    const [day = '', clock] = timeText(time, step).split(' ');
    if (clock === undefined) return step >= 27 * DAY ? day.slice(0, 7) : day.slice(5);
    const text = day === before ? clock : `${clock}\n${day.slice(5)}`;
    before = day;
    return text;
  });
}

/** Return the length of a bucket in words. */
export function lengthText(milliseconds: number): string {
  const units = [[DAY, 'd'], [HOUR, 'h'], [MINUTE, 'min'], [SECOND, 's'], [1, 'ms']] as const;
  const [size, word] = units.find(([each]) => milliseconds >= each) ?? [0.001, 'µs'];
  return `${Number((milliseconds / size).toPrecision(3))} ${word}`;
}

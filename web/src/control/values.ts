// Values of readings as text and as numbers for plots. Pure.

import { unitOf } from '../base/units';

/** Return a number with about four digits, without an exponent where people do not expect one. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) return value.toExponential(2);
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  return String(Number(value.toFixed(digits)));
}

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** Return a value of a reading with the unit that its name tells, such as `12.5 V`; sizes in one that suits them. */
export function measured(name: string, value: number): string {
  const { symbol } = unitOf(name);
  if (symbol !== 'B' || !Number.isFinite(value)) return symbol ? `${shown(value)} ${symbol}` : shown(value);
  const power = Math.min(Math.max(0, Math.floor(Math.log10(Math.max(1, Math.abs(value))) / 3)), SIZES.length - 1);
  return `${shown(Number((value / 1000 ** power).toPrecision(3)))} ${SIZES[power] ?? 'B'}`;
}

/** A value of a reading: its path, its text, and its number if it has one. */
export interface Flat {
  readonly path: string;
  readonly text: string;
  readonly number: number | undefined;
}

const MOST = 60; // values that a card lists

/** Return the values within nested readings, at most MOST. */
export function flat(value: unknown, path = ''): Flat[] {
  const out: Flat[] = [];
  const visit = (part: unknown, at: string): void => {
    if (out.length >= MOST) return;
    if (typeof part === 'number') out.push({ path: at, text: shown(part), number: part });
    else if (typeof part === 'boolean') out.push({ path: at, text: part ? 'yes' : 'no', number: Number(part) });
    else if (typeof part === 'string') out.push({ path: at, text: part.slice(0, 200), number: undefined });
    else if (part === null || part === undefined) out.push({ path: at, text: '–', number: undefined });
    else if (typeof part === 'object') {
      for (const [name, inner] of Object.entries(part)) visit(inner, at === '' ? name : `${at}.${name}`);
    }
  };
  visit(value, path);
  return out;
}

/** What people read when the machine has ended the session of their page. */
export const INTERRUPTED = 'Stopped: another client called STOP ALL, or the connection was interrupted. Press again to go on.';

const CANCELLED = /^operation [0-9a-f-]{36} was cancelled/u; // STOP ALL ends all calls

/** Return a sentence for an error of a call. Texts of gRPC begin with a code in brackets. */
export function said(error: unknown): string {
  if (error instanceof Error && Array.isArray(error.cause) && error.cause.length > 0) return said(error.cause.at(-1)); // of the SDK
  const text = error instanceof Error ? error.message : String(error);
  const sentence = text.replace(/^\[[a-z_]{1,40}\] /u, '');
  return sentence === 'SESSION_EXPIRED' || CANCELLED.test(sentence) ? INTERRUPTED : sentence;
}

// The answer to a query as the server sends it, and its values as text. Pure.

import { timeText } from '../plot/ranges';

export type Value = string | number | boolean | null | readonly unknown[] | Readonly<Record<string, unknown>>;
export type Kind = 'number' | 'time' | 'boolean' | 'json' | 'text';

export interface Column {
  readonly name: string;
  /** The type, as DuckDB calls it. */
  readonly type: string;
  readonly kind: Kind;
}

/** `rows` are those of `count` that the page gets; times are in milliseconds since 1970. */
export interface Answer {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Value[])[];
  readonly count: number;
}

/** A refusal; `position` is the number of characters before the mistake. */
export interface Refusal {
  readonly error: string;
  readonly position: number | null;
}

export interface Stage {
  readonly stage: 'waiting' | 'copying' | 'running';
  readonly percent: number;
}

/** Return a value as text, whole. */
export function whole(value: Value): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const LONGEST = 300; // characters of a value in the table

/** Parse a line of the server; throws a TypeError if it is something else. */
export function lineOf(text: string): Answer | Refusal | Stage {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || !('columns' in value || 'error' in value || 'stage' in value)) throw new TypeError('the line is neither a stage nor an answer');
  return value as Answer | Refusal | Stage;
}

/** Return how texts of the values of a column are made. */
export function textsOf(answer: Answer, at: number): (value: Value) => string {
  const column = answer.columns[at];
  if (column?.kind === 'time' && column.type === 'DATE') return (value) => (typeof value === 'number' ? new Date(value).toISOString().slice(0, 10) : whole(value));
  if (column?.kind === 'time') {
    const seconds = answer.rows.every((row) => typeof row[at] !== 'number' || row[at] % 1000 === 0);
    return (value) => (typeof value === 'number' ? timeText(value, seconds ? 1000 : 1) : whole(value));
  }
  return plain;
}

const DIGITS = 10; // of a number in the table: the title has all

function plain(value: Value): string {
  if (typeof value === 'number' && !Number.isInteger(value)) return String(Number(value.toPrecision(DIGITS)));
  const text = whole(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}

const RANKS: Readonly<Record<string, number>> = { number: 0, boolean: 1, string: 2, object: 3 };

function compared(a: Value, b: Value): number {
  const ranks = (RANKS[typeof a] ?? 4) - (RANKS[typeof b] ?? 4);
  if (ranks !== 0) return ranks;
  return typeof a === 'string' || typeof a === 'object' ? whole(a).localeCompare(whole(b)) : Number(a) - Number(b);
}

/** Return rows ordered by a column; those without a value are last. */
export function ordered(rows: Answer['rows'], at: number, falling: boolean): Answer['rows'] {
  return rows.toSorted((a, b) => {
    const left = a[at] ?? null, right = b[at] ?? null;
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return falling ? compared(right, left) : compared(left, right);
  });
}

/** Return a duration in words. */
export function took(milliseconds: number): string {
  return milliseconds < 10_000 ? `${(milliseconds / 1000).toFixed(1)} s` : `${Math.round(milliseconds / 1000)} s`;
}


// The condition of a trigger as a level on a plot of what it compares. Pure.

import type { Answer, Field } from './series';

/** What a trigger reads, such as `sensor:door:Readings`. */
export interface Readings {
  readonly type: string;
  readonly component: string;
  readonly method: string;
}

/** Parse `type:component:method` as the server does: the component may have colons, the type may be an API. Null if it is neither. */
export function readingsOf(text: string): Readings | null {
  const parts = text.trim().split(':');
  const [type = '', ...rest] = parts[0] === 'rdk' && parts.length > 4 ? parts.slice(2) : parts;
  const method = rest.pop() ?? '', component = rest.join(':');
  return type && component && method ? { type, component, method } : null;
}

/** Return the number that a form compares with, as the server reads it; null for anything else. */
export function levelOf(text: string): number | null {
  return /^\s*-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?\s*$/.test(text) && Number.isFinite(Number(text)) ? Number(text) : null;
}

/** The side of a level on which numbers meet a condition; null for operators without a level, such as `regex`. */
export const SIDES: Readonly<Record<string, 'above' | 'below' | 'at'>> = { gt: 'above', gte: 'above', lt: 'below', lte: 'below', eq: 'at', neq: 'at' };

type Meets = (least: number, greatest: number, level: number) => boolean;
const MEETS: Readonly<Record<string, Meets>> = {
  gt: (_least, greatest, level) => greatest > level,
  gte: (_least, greatest, level) => greatest >= level,
  lt: (least, _greatest, level) => least < level,
  lte: (least, _greatest, level) => least <= level,
  eq: (least, greatest, level) => least === level || greatest === level, // what is between is not known
  neq: (least, greatest, level) => least !== level || greatest !== level,
};

/** Return how many buckets of fields have a number that meets a condition, and how many have numbers. */
export function metOf(fields: readonly Field[], operator: string, level: number): { met: number; all: number } {
  const meets = MEETS[operator];
  let met = 0, all = 0;
  for (const field of fields) {
    field.min.forEach((least, at) => {
      const greatest = field.max[at] ?? null;
      if (least === null || greatest === null) return;
      all += 1;
      if (meets?.(least, greatest, level)) met += 1;
    });
  }
  return { met, all };
}

const PREFIX = 'readings.';

/** Return the names under which an answer may have what a trigger calls `path`. */
export function namesOfPath(path: string): string[] {
  return [`${PREFIX}${path}`, path];
}

/** Return an answer with what a trigger calls `path` only: inside `readings` if it is there, as triggers look it up. */
export function onlyPath(answer: Answer, path: string): Answer {
  return { ...answer, series: answer.series.flatMap((source) => {
    const field = namesOfPath(path).map((name) => source.fields.find((each) => each.name === name)).find(Boolean);
    return field && !field.boolean ? [{ ...source, fields: [field] }] : [];
  }) };
}

/** Return paths with numbers that a trigger can compare, as an answer names them. */
export function pathsOf(answer: Answer): string[] {
  const names = answer.series.flatMap((source) => [...source.fields.filter(({ boolean }) => !boolean).map(({ name }) => name), ...source.others]);
  return [...new Set(names.map((name) => (name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name)))];
}

/** Return a step of 1, 2 or 5 times a power of ten, a hundredth of a range or less. */
export function stepOf(low: number, high: number): number {
  const hundredth = (high - low) / 100;
  if (!(hundredth > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(hundredth));
  return ([5, 2].find((digit) => digit * power <= hundredth) ?? 1) * power;
}

/** Return the multiple of a step that is nearest to a number, without digits that come from rounding. */
export function rounded(value: number, step: number): number {
  return Number((Math.round(value / step) * step).toPrecision(12));
}

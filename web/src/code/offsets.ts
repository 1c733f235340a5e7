// Offsets of the server count characters, those of the browser UTF-16 units. Pure.

const ONE_UNIT = /^[\0-\uD7FF\uE000-\uFFFF]*$/;

export function toServer(text: string, unit: number): number {
  return Array.from(text.slice(0, unit)).length;
}

export function toBrowser(text: string, offset: number): number {
  if (ONE_UNIT.test(text)) return Math.min(offset, text.length);
  let unit = 0;
  let left = offset;
  for (const character of text) {
    if (left-- <= 0) break;
    unit += character.length;
  }
  return unit;
}

export interface Change {
  from: number;
  to: number;
  insert: string;
}

/** Return the part in which two texts differ, so that marks, folds and the cursor outside it stay. */
export function changed(old: string, text: string): Change {
  const shorter = Math.min(old.length, text.length);
  let same = 0;
  let tail = 0;
  while (same < shorter && old[same] === text[same]) same++;
  while (tail < shorter - same && old[old.length - 1 - tail] === text[text.length - 1 - tail]) tail++;
  return { from: same, to: old.length - tail, insert: text.slice(same, text.length - tail) };
}

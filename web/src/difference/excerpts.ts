// The two texts of a difference, from the lines that the server has compared. Pure.

export interface Line {
  sign: string; // '+', '-', ' ', or '@' for omitted lines
  old: number | null;
  new: number | null;
  text: string;
}

export interface Excerpt {
  text: string;
  numbers: string[]; // of each line, as shown next to it
}

/** Return one side of a difference: the lines with the sign `own`, and those of both sides. */
export function excerpt(lines: readonly Line[], side: 'old' | 'new'): Excerpt {
  const own = side === 'old' ? '-' : '+';
  const shown = lines.filter((line) => line.sign === own || line.sign === ' ' || line.sign === '@');
  return {
    text: shown.map((line) => (line.sign === '@' ? '⋯' : line.text)).join('\n'),
    numbers: shown.map((line) => String(line[side] ?? '')),
  };
}

// Queries that this browser has run: kept only here, the last ones.

export interface Past {
  readonly query: string;
  readonly organization: string;
  /** When it was run, in milliseconds since 1970. */
  readonly at: number;
  /** Rows of the answer; null for one that failed. */
  readonly rows: number | null;
}

const KEY = 'sql-history';
export const MOST = 50;
export const LONGEST = 8192; // characters of a query that is kept

function isPast(value: unknown): value is Past {
  return typeof value === 'object' && value !== null && 'query' in value && typeof value.query === 'string' && 'organization' in value && typeof value.organization === 'string'
    && 'at' in value && typeof value.at === 'number' && 'rows' in value && (value.rows === null || typeof value.rows === 'number');
}

/** Return queries with one more, newest first; a query that is there again moves to the front. */
export function withPast(past: readonly Past[], added: Past): Past[] {
  if (added.query.length > LONGEST) return [...past];
  const others = past.filter((each) => each.query !== added.query || each.organization !== added.organization);
  return [added, ...others].slice(0, MOST);
}

export function readPast(): Past[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(value) ? value.filter(isPast).slice(0, MOST) : [];
  } catch {
    return []; // not allowed to keep anything, or kept by something else
  }
}

export function writePast(past: readonly Past[]): void {
  try {
    if (past.length > 0) localStorage.setItem(KEY, JSON.stringify(past));
    else localStorage.removeItem(KEY);
  } catch {
    // full, or not allowed: the list lasts as long as the page
  }
}

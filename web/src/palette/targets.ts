// The list of a palette: which target is chosen, and what the server's answer must look like.

export interface Target {
  readonly kind: string;
  readonly title: string;
  readonly href: string;
  readonly detail: string;
}

/** Return the targets of an answer; those that lead elsewhere than to this site are left out. */
export function targetsOf(answer: unknown): Target[] {
  if (!Array.isArray(answer)) return [];
  return answer.flatMap((entry: unknown): Target[] => {
    if (typeof entry !== 'object' || entry === null) return [];
    const { kind, title, href, detail } = entry as Record<string, unknown>;
    if (typeof kind !== 'string' || typeof title !== 'string' || typeof href !== 'string') return [];
    return /^\/(?!\/)/.test(href) ? [{ kind, title, href, detail: typeof detail === 'string' ? detail : '' }] : [];
  });
}

/** Return the next index after a key; it stays if the key moves nothing. The list wraps around. */
export function moved(key: string, index: number, count: number): number {
  if (count === 0) return -1;
  if (key === 'ArrowDown') return (index + 1) % count;
  if (key === 'ArrowUp') return (index + count - 1 + (index < 0 ? 1 : 0)) % count;
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  return index;
}

/** Whether a key press opens the palette: Ctrl+K, or Command+K on a Mac. */
export function opens(event: { readonly key: string; readonly ctrlKey: boolean; readonly metaKey: boolean; readonly altKey: boolean; readonly shiftKey: boolean }): boolean {
  return event.key.toLowerCase() === 'k' && event.ctrlKey !== event.metaKey && !event.altKey && !event.shiftKey;
}

// Repetition of a task while a page is shown, for values that a machine does not announce.

/** Sleep; returns early, without an error, when `signal` is aborted. */
export function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) { resolve(); return; }
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener('abort', end);
  });
}

/** Return when the page is visible or `signal` is aborted. */
export function visible(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const check = (): void => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', check);
      signal.removeEventListener('abort', check);
      resolve();
    };
    document.addEventListener('visibilitychange', check);
    signal.addEventListener('abort', check);
  });
}

/** Tasks that wait for a gate go on while it is open. */
export class Gate {
  #open = true;
  readonly #waiting = new Set<() => void>();

  set(open: boolean): void {
    this.#open = open;
    if (!open) return;
    for (const pass of this.#waiting) pass();
    this.#waiting.clear();
  }

  /** Return when the gate is open or `signal` is aborted. */
  passed(signal: AbortSignal): Promise<void> {
    if (this.#open || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const pass = (): void => {
        this.#waiting.delete(pass);
        signal.removeEventListener('abort', pass);
        resolve();
      };
      this.#waiting.add(pass);
      signal.addEventListener('abort', pass);
    });
  }
}

/**
 * Run `task` again and again until `signal` is aborted, `pause()` milliseconds after it has ended, and only while the page
 * is visible and `gate` is open. Errors of the task go to `failed`; the next run follows all the same.
 */
export async function repeat(
  task: () => Promise<void>,
  pause: () => number,
  signal: AbortSignal,
  failed: (error: unknown) => void,
  gate?: Gate,
): Promise<void> {
  while (!signal.aborted) {
    await gate?.passed(signal);
    await visible(signal);
    await run(task, signal, failed);
    await sleep(pause(), signal);
  }
}

async function run(task: () => Promise<void>, signal: AbortSignal, failed: (error: unknown) => void): Promise<void> {
  if (signal.aborted) return;
  try {
    await task();
  } catch (error) {
    if (!isEnded(signal)) failed(error);
  }
}

const isEnded = (signal: AbortSignal): boolean => signal.aborted;

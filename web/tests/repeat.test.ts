import { expect, it, vi } from 'vitest';
import { repeat } from '../src/base/repeat';

it('repeats a task only while the page is visible', async () => {
  vi.useFakeTimers();
  let hidden = false, runs = 0;
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
  const controller = new AbortController();
  const ended = repeat(() => { runs += 1; return Promise.resolve(); }, () => 1000, controller.signal, () => undefined);
  await vi.advanceTimersByTimeAsync(2500);
  expect(runs).toBe(3);
  hidden = true;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(runs).toBe(3);
  hidden = false;
  document.dispatchEvent(new Event('visibilitychange'));
  await vi.advanceTimersByTimeAsync(10);
  expect(runs).toBe(4);
  controller.abort();
  await ended;
  vi.useRealTimers();
});

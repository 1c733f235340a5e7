import { expect, it, vi } from 'vitest';
import { Gate, repeat } from '../src/base/repeat';

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

it('waits at a closed gate, and ends there when it is aborted', async () => {
  vi.useFakeTimers();
  let runs = 0;
  const gate = new Gate();
  const controller = new AbortController();
  const ended = repeat(() => { runs += 1; return Promise.resolve(); }, () => 1000, controller.signal, () => undefined, gate);
  await vi.advanceTimersByTimeAsync(500);
  expect(runs).toBe(1);
  gate.set(false);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(runs).toBe(1);
  gate.set(true);
  await vi.advanceTimersByTimeAsync(10);
  expect(runs).toBe(2);
  gate.set(false);
  await vi.advanceTimersByTimeAsync(5000);
  controller.abort();
  await ended;
  expect(runs).toBe(2);
  vi.useRealTimers();
});

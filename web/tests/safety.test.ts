import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { INTERVAL, Safety, WINDOW, type SessionCalls } from '../src/control/safety';
import { INTERRUPTED } from '../src/control/values';

let beats: string[];
let fails: boolean;
let stuck: boolean;
let hidden: boolean;
const calls: SessionCalls = {
  start: (window) => { beats.push(`start ${window}`); return Promise.resolve(`s${beats.length}`); },
  heartbeat: (id) => {
    beats.push(id);
    if (stuck) return new Promise(() => undefined);
    return fails ? Promise.reject(new Error('SESSION_EXPIRED')) : Promise.resolve();
  },
};

beforeEach(() => {
  vi.useFakeTimers();
  [beats, fails, stuck, hidden] = [[], false, false, false];
  vi.spyOn(document, 'hidden', 'get').mockImplementation(() => hidden);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const hide = (): void => { hidden = true; document.dispatchEvent(new Event('visibilitychange')); };

describe('the session of a page', () => {
  it('starts with the first command, once, and lives by heartbeats', async () => {
    const safety = new Safety(calls);
    expect(safety.active).toBe(false);
    expect(await Promise.all([safety.session(), safety.session()])).toEqual(['s1', 's1']);
    await vi.advanceTimersByTimeAsync(4 * INTERVAL);
    expect(beats).toEqual([`start ${WINDOW}`, 's1', 's1', 's1', 's1']);
    safety.end('');
  });

  it('sends no heartbeat while one is on its way', async () => {
    const safety = new Safety(calls);
    await safety.session();
    stuck = true;
    await vi.advanceTimersByTimeAsync(10 * WINDOW);
    expect(beats).toEqual([`start ${WINDOW}`, 's1']);
    safety.end('');
  });

  it('lets go of everything when a heartbeat fails, and starts again with the next command', async () => {
    const safety = new Safety(calls);
    await safety.session();
    const reasons: string[] = [];
    safety.hold((reason) => { reasons.push(reason); });
    fails = true;
    await vi.advanceTimersByTimeAsync(INTERVAL);
    expect(reasons).toHaveLength(1);
    expect(reasons[0]).toBe(INTERRUPTED);
    fails = false;
    expect(await safety.session()).toBe('s3');
    safety.end('');
  });
});

describe('a page', () => {
  it('that loses the focus lets go of what is held, and of movements only when it is hidden', async () => {
    const safety = new Safety(calls);
    const unwatch = safety.watch();
    await safety.session();
    const stopped: string[] = [];
    safety.hold(() => { stopped.push('hold'); });
    safety.during(() => { stopped.push('move'); });
    const arrived = safety.during(() => { stopped.push('arrived'); });
    arrived();
    window.dispatchEvent(new Event('blur'));
    expect(stopped).toEqual(['hold']);
    hide();
    expect(stopped.slice(1)).toContain('move');
    expect(stopped).not.toContain('arrived');
    unwatch();
  });

  it('that is hidden while its session starts has another one when it is shown again', async () => {
    const answers: ((id: string) => void)[] = [];
    const safety = new Safety({ ...calls, start: () => new Promise((resolve) => { answers.push(resolve); }) });
    const unwatch = safety.watch();
    const first = safety.session();
    hide();
    hidden = false;
    const second = safety.session();
    answers[0]?.('old');
    await expect(first).rejects.toThrow('Stopped');
    answers[1]?.('new');
    await expect(second).resolves.toBe('new');
    expect(safety.active).toBe(true);
    unwatch();
  });

  it('that is hidden while its session starts sends no heartbeats when the answer comes', async () => {
    const answers: ((id: string) => void)[] = [];
    const safety = new Safety({ ...calls, start: () => new Promise((resolve) => { answers.push(resolve); }) });
    const unwatch = safety.watch();
    const first = safety.session();
    hide();
    answers[0]?.('late');
    await expect(first).rejects.toThrow('Stopped');
    await vi.advanceTimersByTimeAsync(10 * WINDOW);
    expect([beats, safety.active]).toEqual([[], false]);
    unwatch();
  });

  it('that is hidden lets go and sends no more heartbeats', async () => {
    const safety = new Safety(calls);
    const unwatch = safety.watch();
    await safety.session();
    const reasons: string[] = [];
    safety.hold((reason) => { reasons.push(reason); });
    hide();
    const before = beats.length;
    await vi.advanceTimersByTimeAsync(10 * WINDOW);
    expect(reasons).toEqual(['Stopped: the page was hidden.']);
    expect(beats).toHaveLength(before);
    await expect(safety.session()).rejects.toThrow('not visible');
    unwatch();
  });

  it.each([['pagehide', window], ['freeze', document]] as const)('that gets %s lets go', async (event, target) => {
    const safety = new Safety(calls);
    const unwatch = safety.watch();
    await safety.session();
    let count = 0;
    safety.hold(() => { count += 1; });
    target.dispatchEvent(new Event(event));
    expect([count, safety.active]).toEqual([1, false]);
    unwatch();
  });

  it('that loses the focus lets go and keeps its session', async () => {
    const safety = new Safety(calls);
    const unwatch = safety.watch();
    await safety.session();
    let count = 0;
    safety.hold(() => { count += 1; });
    window.dispatchEvent(new Event('blur'));
    expect([count, safety.active]).toEqual([1, true]);
    unwatch();
  });

  it('does not let go twice of what a person has released', async () => {
    const safety = new Safety(calls);
    const unwatch = safety.watch();
    await safety.session();
    let count = 0;
    const forget = safety.hold(() => { count += 1; });
    forget();
    hide();
    expect(count).toBe(0);
    unwatch();
  });
});

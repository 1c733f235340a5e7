import { describe, expect, it } from 'vitest';
import { Arrangement } from '../src/control/arrangement';
import type { Layout } from '../src/control/resources';

class Browser {
  readonly kept = new Map<string, string>();
  getItem(name: string): string | null { return this.kept.get(name) ?? null; }
  setItem(name: string, text: string): void { this.kept.set(name, text); }
  removeItem(name: string): void { this.kept.delete(name); }
}

const layout = (...hidden: string[]): Layout => ({ hidden, order: [] });
const text = (...hidden: string[]): string => JSON.stringify(layout(...hidden));

function browser(kept?: string): Browser {
  const store = new Browser();
  if (kept !== undefined) store.setItem('rover', kept);
  return store;
}

describe('the arrangement at first', () => {
  it.each([
    ['that of the server', text('a'), '/cards', text('b'), 'a'],
    ['that of the browser, if the server has none', '', '/cards', text('b'), 'b'],
    ['that of the browser, if it may not be saved', text('a'), '', text('b'), 'b'],
    ['that of the server, for who may not save and has none', text('a'), '', undefined, 'a'],
    ['none', '', '/cards', undefined, undefined],
    ['none instead of an odd one', '{', '/cards', undefined, undefined],
  ])('is %s', (_, saved, path, own, hidden) => {
    expect(new Arrangement(saved, path, 'rover', browser(own)).layout.hidden[0]).toBe(hidden);
  });
});

describe('a changed arrangement', () => {
  it('is kept by the server only', async () => {
    const store = browser(text('old')), sent: string[] = [];
    const arrangement = new Arrangement('', '/cards', 'rover', store, (path, body) => { sent.push(path, body); return Promise.resolve(); });
    expect(await arrangement.save(layout('a'))).toContain('for everyone');
    expect(sent).toEqual(['/cards', text('a')]);
    expect(store.kept.size).toBe(0);
    expect(arrangement.layout).toEqual(layout('a'));
  });

  it('is kept by the browser if the server does not take it', async () => {
    const store = browser();
    const arrangement = new Arrangement('', '/cards', 'rover', store, () => Promise.reject(new Error('the disk is full')));
    expect(await arrangement.save(layout('a'))).toBe('Arranged in this browser only: the disk is full');
    const again = new Arrangement(text('b'), '/cards', 'rover', store, () => Promise.resolve());
    expect(again.layout).toEqual(layout('a'));
    await again.save(layout('c'));
    expect(new Arrangement(text('c'), '/cards', 'rover', store).layout).toEqual(layout('c'));
  });

  it('is kept by the browser of who may not arrange', async () => {
    const store = browser();
    expect(await new Arrangement('', '', 'rover', store).save(layout('a'))).toBe('Arranged in this browser.');
    expect(store.getItem('rover')).toBe(text('a'));
  });

  it('is sent after the one before, and only the newest', async () => {
    const sent: string[] = [];
    let answer = (): void => undefined;
    const arrangement = new Arrangement('', '/cards', 'rover', browser(), (_, body) => { sent.push(body); return new Promise((resolve) => { answer = resolve; }); });
    const first = arrangement.save(layout('a'));
    expect([await arrangement.save(layout('b')), await arrangement.save(layout('c'))]).toEqual([null, null]);
    answer();
    await Promise.resolve();
    await Promise.resolve();
    answer();
    expect(await first).toContain('for everyone');
    expect(sent).toEqual([text('a'), text('c')]);
  });
});

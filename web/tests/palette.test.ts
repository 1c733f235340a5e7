import { describe, expect, it } from 'vitest';
import { moved, opens, targetsOf } from '../src/palette/targets';

const press = (key: string, changes = {}): Parameters<typeof opens>[0] => ({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...changes });

describe('the palette', () => {
  it('opens with Ctrl+K and Command+K only', () => {
    expect(opens(press('k', { ctrlKey: true }))).toBe(true);
    expect(opens(press('K', { metaKey: true }))).toBe(true);
    for (const changes of [{}, { ctrlKey: true, shiftKey: true }, { ctrlKey: true, altKey: true }, { ctrlKey: true, metaKey: true }]) {
      expect(opens(press('k', changes))).toBe(false);
    }
    expect(opens(press('j', { ctrlKey: true }))).toBe(false);
  });

  it('moves and wraps around', () => {
    expect(moved('ArrowDown', 0, 3)).toBe(1);
    expect(moved('ArrowDown', 2, 3)).toBe(0);
    expect(moved('ArrowUp', 0, 3)).toBe(2);
    expect(moved('ArrowUp', -1, 3)).toBe(2);
    expect(moved('Home', 2, 3)).toBe(0);
    expect(moved('End', 0, 3)).toBe(2);
    expect(moved('a', 1, 3)).toBe(1);
    expect(moved('ArrowDown', 0, 0)).toBe(-1);
  });

  it('takes only targets of this site', () => {
    const target = { kind: 'Page', title: 'Data', href: '/data', detail: '' };
    const wrong = [{ ...target, href: '//elsewhere' }, { ...target, href: 'javascript:alert(1)' }, { ...target, title: 1 }, null, 3];
    expect(targetsOf([target, ...wrong])).toEqual([target]);
    expect(targetsOf({})).toEqual([]);
    expect(targetsOf([{ kind: 'Page', title: 'Data', href: '/data' }])).toEqual([target]);
  });
});

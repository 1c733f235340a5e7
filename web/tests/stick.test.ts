import { describe, expect, it } from 'vitest';
import { beyondDeadZone, CENTER, DEAD, drives, isCenter, limited, ofGamepad, ofKeys, ofPointer } from '../src/control/stick';

describe('a pointer', () => {
  it('is at rest in the middle', () => { expect(ofPointer(100, 100, 200)).toEqual(CENTER); });
  it('drives forward at the top, and turns left at the left', () => {
    expect(ofPointer(100, 0, 200)).toEqual({ forward: 1, turn: 0 });
    expect(ofPointer(0, 100, 200)).toEqual({ forward: 0, turn: 1 });
  });
  it('is limited to the circle, outside the pad too', () => {
    const { forward, turn } = ofPointer(1000, -800, 200);
    expect(Math.hypot(forward, turn)).toBeLessThanOrEqual(1.0001);
    expect(turn).toBeLessThan(0);
    expect(forward).toBeGreaterThan(0);
  });
});

describe('the dead zone', () => {
  it('swallows what a worn gamepad sends at rest', () => { expect(beyondDeadZone(DEAD)).toBe(0); });
  it('begins at zero and ends at one', () => {
    expect(beyondDeadZone(DEAD + 0.001)).toBeCloseTo(0.001, 2);
    expect(beyondDeadZone(1)).toBe(1);
    expect(beyondDeadZone(-1)).toBe(-1);
  });
});

describe('keys', () => {
  it('add up, and opposite ones cancel each other', () => {
    expect(ofKeys(['KeyW', 'KeyA'])).toEqual({ forward: 1, turn: 1 });
    expect(isCenter(ofKeys(['KeyW', 'KeyS']))).toBe(true);
    expect(ofKeys(['KeyW', 'ArrowUp'])).toEqual({ forward: 1, turn: 0 });
  });
  it('are those of driving only', () => {
    expect(drives('KeyW')).toBe(true);
    expect(drives('KeyQ')).toBe(false);
    expect(drives('toString')).toBe(false);
  });
});

it('reads the left stick of a gamepad', () => {
  expect(ofGamepad([0.02, -1])).toEqual({ forward: 1, turn: 0 });
  expect(ofGamepad([])).toEqual(CENTER);
});

it('scales by the limits', () => { expect(limited({ forward: 1, turn: -1 }, 0.5, 0.2)).toEqual({ forward: 0.5, turn: -0.2 }); });

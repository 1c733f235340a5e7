import { describe, expect, it } from 'vitest';
import { attitude, local } from '../src/control/attitude';
import { limitsOf } from '../src/control/kinematics';

const sin = (degrees: number): number => Math.sin((degrees * Math.PI) / 180);
const cos = (degrees: number): number => Math.cos((degrees * Math.PI) / 180);

describe('attitude', () => {
  it.each([
    ['level', { oX: 0, oY: 0, oZ: 1, theta: 0 }, { roll: 0, pitch: 0, yaw: 0 }],
    ['turned', { oX: 0, oY: 0, oZ: 1, theta: 90 }, { roll: 0, pitch: 0, yaw: 90 }],
    ['pitched', { oX: sin(30), oY: 0, oZ: cos(30), theta: 0 }, { roll: 0, pitch: 30, yaw: 0 }],
    ['rolled', { oX: 0, oY: -sin(20), oZ: cos(20), theta: 90 }, { roll: 20, pitch: 0, yaw: 0 }],
    ['not normal', { oX: 0, oY: 0, oZ: 7, theta: -45 }, { roll: 0, pitch: 0, yaw: -45 }],
  ])('of a body that is %s', (_, vector, expected) => {
    const found = attitude(vector);
    expect(found.roll).toBeCloseTo(expected.roll, 6);
    expect(found.pitch).toBeCloseTo(expected.pitch, 6);
    expect(found.yaw).toBeCloseTo(expected.yaw, 6);
  });

  it('of nothing is level', () => { expect(attitude({ oX: 0, oY: 0, oZ: 0, theta: 0 }).yaw).toBeTypeOf('number'); });
});

describe('local', () => {
  it('measures meters east and north of the first place', () => {
    const [first, second] = local([{ latitude: 60, longitude: 10 }, { latitude: 60.001, longitude: 10.002 }]);
    expect(first).toEqual({ x: 0, y: 0 });
    expect(second?.y).toBeCloseTo(111.32, 1);
    expect(second?.x).toBeCloseTo(111.32, 1); // a degree of longitude is half as long there
  });

  it('of no place is empty', () => { expect(local([])).toEqual([]); });
});

describe('limitsOf', () => {
  it('returns the limits of each joint, and a full turn where they are not usable', () => {
    const joints = [{ min: -90, max: 45 }, { min: 5, max: 5 }, { min: Number.NaN, max: 1 }];
    expect(limitsOf({ joints })).toEqual([{ low: -90, high: 45 }, { low: -360, high: 360 }, { low: -360, high: 360 }]);
    expect(limitsOf({})).toEqual([]);
  });
});

import { describe, expect, it } from 'vitest';
import { chainOf, jointsOf, reachOf } from '../src/control/kinematics';
import { bodyOf } from '../src/control/poses';
import { about, halfOf, oriented, turned } from '../src/base/space';

const joint = (id: string, parent: string, axis: object, type = 'revolute'): { id: string; parent: string; axis: object; type: string; min: number; max: number } =>
  ({ id, parent, axis, type, min: -90, max: 90 });
const link = (id: string, parent: string, z: number): object => ({ id, parent, translation: { z } });

// The simulated arm of machine-server, and a chain with an oriented link and a joint that slides.
const SIX = {
  joints: [
    joint('waist', 'world', { z: 1 }), joint('shoulder', 'column', { y: 1 }), joint('elbow', 'upper', { y: 1 }),
    joint('roll', 'forearm', { z: 1 }), joint('pitch', 'wrist', { y: 1 }), joint('flange_roll', 'hand', { z: 1 }),
  ],
  links: [
    link('column', 'waist', 250), link('upper', 'shoulder', 300), link('forearm', 'elbow', 250),
    link('wrist', 'roll', 50), link('hand', 'pitch', 80), link('flange', 'flange_roll', 60),
  ],
};
const ODD = {
  joints: [joint('j1', 'l1', { y: 1, z: 1 }), { ...joint('j2', 'l2', { z: 2 }, 'prismatic'), min: 0, max: 300 }],
  links: [
    { id: 'l1', parent: 'world', translation: { z: 100 }, orientation: { type: 'ov_degrees', value: { x: 1, y: 1, z: 0.5, th: 30 } } },
    { id: 'l2', parent: 'j1', translation: { x: 10, y: 20, z: 200 } }, { id: 'l3', parent: 'j2', translation: { y: 5, z: 50 } },
  ],
};

describe('an arm', () => {
  // The places are those that machine-server computes: engine/geometry/chain.py.
  it.each([
    [SIX, [0, 30, 60, 0, 60, 0], [520, 0, 388.5641]],
    [SIX, [40, -20, 70, 33, -50, 10], [143.5115, 44.171, 851.49]],
    [ODD, [35, 120], [157.0349, 335.5625, 119.0491]],
  ])('ends where the machine says', (kinematics, values, end) => {
    const chain = chainOf(kinematics);
    const last = jointsOf(chain ?? [], values).at(-1) ?? [];
    expect(last).toHaveLength(3);
    last.forEach((value, axis) => { expect(value).toBeCloseTo(end[axis] ?? NaN, 3); });
  });

  it('is drawn from the base over its joints', () => {
    expect(jointsOf(chainOf(SIX) ?? [], [0, 0, 0, 0, 0, 0]).map(([x, y, z]) => [x, y, z])).toEqual([0, 250, 550, 800, 850, 930, 990].map((z) => [0, 0, z]));
    expect(reachOf(chainOf(SIX) ?? [])).toBe(990);
    expect(reachOf(chainOf(ODD) ?? [])).toBeCloseTo(100 + Math.hypot(10, 20, 200) + Math.hypot(5, 50) + 300);
  });

  it.each([
    ['without parts', {}], ['of another form', { links: [{ id: 'a', parent: 'world', orientation: { type: 'matrix', value: {} } }] }],
    ['with branches', { links: [link('a', 'world', 1), link('b', 'world', 1)] }], ['in a circle', { links: [link('world', 'world', 1)] }],
    ['apart from the base', { links: [link('a', 'nowhere', 1)] }],
  ])('%s is not drawn', (_, kinematics) => { expect(chainOf(kinematics)).toBeNull(); });
});

describe('space', () => {
  it('turns about an axis, and to an orientation vector', () => {
    turned(about([0, 0, 2], 90), [1, 0, 0]).forEach((value, axis) => { expect(value).toBeCloseTo([0, 1, 0][axis] ?? NaN); });
    expect(turned(about([0, 0, 0], 90), [1, 2, 3])).toEqual([1, 2, 3]);
    turned(oriented([1, 0, 0], 0), [0, 0, 1]).forEach((value, axis) => { expect(value).toBeCloseTo([1, 0, 0][axis] ?? NaN); });
    turned(oriented([0, 0, -3], 0), [0, 0, 1]).forEach((value, axis) => { expect(value).toBeCloseTo([0, 0, -1][axis] ?? NaN); });
  });

  it('has round planes around the origin', () => {
    expect([[], [120], [-380, 2], [0.5, 501], [NaN, 20]].map((each) => halfOf(each))).toEqual([100, 200, 500, 1000, 100]);
  });

  it('knows where a body points', () => {
    const { place, forward } = bodyOf('a', 'world', { x: 1, y: 2, z: 3, oX: 0, oY: 0, oZ: 1, theta: 90 });
    expect(place).toEqual([1, 2, 3]);
    forward.forEach((value, axis) => { expect(value).toBeCloseTo([0, 1, 0][axis] ?? NaN); });
    expect(bodyOf('b', '', undefined).place).toEqual([0, 0, 0]);
  });
});

import { describe, expect, it } from 'vitest';
import { framesOf, rotationOf, seen, shapeOf } from '../src/code/frames';
import { turned } from '../src/base/space';
import { parse } from '../src/code/tree';

const DOCUMENT = `{"components": [
  {"name": "arm", "frame": {"translation": {"x": 100}, "orientation": {"type": "ov_degrees", "value": {"z": 1, "th": 90}}}},
  {"name": "hand", "frame": {"parent": "arm", "translation": {"x": 10, "y": "fast"}, "geometry": {"type": "box", "x": 2, "y": 4, "z": 6}}},
  {"name": "lost", "frame": {"parent": "none"}},
  {"name": "a", "frame": {"parent": "b"}}, {"name": "b", "frame": {"parent": "a"}},
  {"name": "plain"}
]}`;
const rounded = (values: readonly number[]): number[] => values.map((each) => Math.round(each * 1e6) / 1e6 + 0);

describe('frames', () => {
  const frames = framesOf(DOCUMENT, parse(DOCUMENT));
  const by = (name: string): (typeof frames)[number] | undefined => frames.find((each) => each.name === name);

  it('are placed in their parents', () => {
    expect(rounded(by('hand')?.place ?? [])).toEqual([100, 10, 0]);
    expect(by('hand')?.lines.flat().every((point) => Math.abs(point[0] - 100) <= 2 + 1e-9 && Math.abs(point[1] - 10) <= 1 + 1e-9)).toBe(true);
    expect(frames.map((each) => each.index)).toEqual([0, 1, 2, 3, 4]);
  });

  it('say why they are not in their places', () => {
    expect(by('hand')?.lost).toBe('');
    expect(by('lost')?.lost).toBe('none has no frame');
    expect(by('a')?.lost).toBe('its parents are a circle');
  });

  it('turn by every form of orientation', () => {
    const quarter = Math.PI / 2;
    for (const orientation of [
      { type: 'ov_degrees', value: { x: 0, y: 0, z: 1, th: 90 } }, { type: 'ov_radians', value: { z: 1, th: quarter } },
      { type: 'axis_angles', value: { z: 2, th: quarter } }, { type: 'euler_angles', value: { yaw: quarter } },
      { type: 'quaternion', value: { w: Math.SQRT1_2, z: Math.SQRT1_2 } },
    ]) expect(rounded(turned(rotationOf(orientation), [1, 0, 0])), orientation.type).toEqual([0, 1, 0]);
    expect(turned(rotationOf(5), [1, 2, 3])).toEqual([1, 2, 3]);
  });
});

describe('a shape', () => {
  it('has the size that is written', () => {
    const most = (lines: readonly (readonly (readonly number[])[])[]): number[] => [0, 1, 2].map((axis) => Math.max(...lines.flat().map((point) => point[axis] ?? 0)));
    expect(rounded(most(shapeOf({ type: 'box', x: 2, y: 4, z: 6 })))).toEqual([1, 2, 3]);
    expect(rounded(most(shapeOf({ type: 'sphere', r: 5 })))).toEqual([5, 5, 5]);
    expect(rounded(most(shapeOf({ r: 5, l: 30 })))).toEqual([5, 5, 15]);
    expect(shapeOf({ type: 'mesh' })).toEqual([]);
  });
});

describe('the view', () => {
  it('from above has x to the right and y up', () => {
    expect(rounded(seen([1, 2, 3], { yaw: 0, pitch: 90 }))).toEqual([1, -2]);
    expect(rounded(seen([1, 2, 3], { yaw: 0, pitch: 0 }))).toEqual([1, -3]);
  });
});

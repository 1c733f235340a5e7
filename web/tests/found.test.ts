import { describe, expect, it } from 'vitest';
import { devicesOf, MOST_DEVICES, type Said } from '../src/code/found';

const EYE: Said = { name: 'eye', api: 'rdk:component:camera', model: 'rdk:builtin:webcam', attributes: { path: '/dev/video0' } };

describe('devices that a machine suggests', () => {
  it('are entries of a configuration', () => {
    expect(devicesOf([EYE, { ...EYE, api: '', type: 'sensor', attributes: undefined }])).toEqual([EYE, { ...EYE, api: 'rdk:component:sensor', attributes: {} }]);
  });

  it('are bounded, whatever the machine answers', () => {
    const hostile: Said[] = [
      {}, { ...EYE, name: '<script>' }, { ...EYE, name: 'x'.repeat(61) }, { ...EYE, model: 5 }, { ...EYE, model: 'a:b' },
      { ...EYE, api: 'rdk:component:camera:x' }, { ...EYE, attributes: { a: 'x'.repeat(20_000) } },
    ];
    expect(devicesOf(hostile)).toEqual([]);
    expect(devicesOf([{ ...EYE, attributes: [1] }])[0]?.attributes).toEqual({});
    expect(devicesOf(Array.from({ length: 5000 }, () => EYE))).toHaveLength(MOST_DEVICES);
  });
});

import { describe, expect, it } from 'vitest';
import { bytesOf, channelsOf, level } from '../src/control/sound';

describe('sound', () => {
  it('survives the way to the machine and back', () => {
    const [left, right] = [Float32Array.from([0, 0.5, -1]), Float32Array.from([0.25, -0.25, 0])];
    const back = channelsOf(bytesOf([left, right]), 2);
    expect([...(back[0] ?? [])]).toEqual([...left]);
    expect([...(back[1] ?? [])]).toEqual([...right]);
  });

  it('is clipped, not wrapped', () => {
    const [samples] = channelsOf(bytesOf([Float32Array.from([2, -2])]), 1);
    expect(samples?.[0]).toBeCloseTo(1, 3);
    expect(samples?.[1]).toBe(-1);
  });

  it('leaves out bytes of an incomplete frame, also in the middle of a buffer', () => {
    const data = new Uint8Array([9, 0, 64, 0, 64, 7]).subarray(1);
    expect(channelsOf(data, 2).map((samples) => [...samples])).toEqual([[0.5], [0.5]]);
  });

  it('has a level', () => {
    expect(level(Float32Array.from([0.5, -0.5]))).toBeCloseTo(0.5, 6);
    expect(level(new Float32Array())).toBe(0);
  });
});

import { describe, expect, it } from 'vitest';
import { changed, toBrowser, toServer } from '../src/code/offsets';
import { excerpt, type Line } from '../src/difference/excerpts';

describe('offsets', () => {
  it('count characters for the server and units for the browser', () => {
    const text = 'a🤖b';
    expect([0, 1, 3, 4].map((unit) => toServer(text, unit))).toEqual([0, 1, 2, 3]);
    expect([0, 1, 2, 3].map((offset) => toBrowser(text, offset))).toEqual([0, 1, 3, 4]);
  });

  it('end at the end of the text', () => {
    expect(toBrowser('abc', 9)).toBe(3);
    expect(toBrowser('🤖', 9)).toBe(2);
  });
});

describe('a change', () => {
  it('is the part in which two texts differ', () => {
    expect(changed('{"a": 1}', '{"a": 12}')).toEqual({ from: 7, to: 7, insert: '2' });
    expect(changed('aaa', 'aa')).toEqual({ from: 2, to: 3, insert: '' });
    expect(changed('same', 'same')).toEqual({ from: 4, to: 4, insert: '' });
  });
});

describe('an excerpt', () => {
  const lines: Line[] = [
    { sign: '@', old: null, new: null, text: '' },
    { sign: ' ', old: 3, new: 3, text: '  "a": [' },
    { sign: '-', old: 4, new: null, text: '    1' },
    { sign: '+', old: null, new: 4, text: '    2,' },
    { sign: '+', old: null, new: 5, text: '    3' },
  ];

  it('has the lines of one side, with their own numbers', () => {
    expect(excerpt(lines, 'old')).toEqual({ text: '⋯\n  "a": [\n    1', numbers: ['', '3', '4'] });
    expect(excerpt(lines, 'new')).toEqual({ text: '⋯\n  "a": [\n    2,\n    3', numbers: ['', '3', '4', '5'] });
  });
});

import { describe, expect, it } from 'vitest';
import type { Answer, Field } from '../src/plot/series';
import { levelOf, metOf, onlyPath, pathsOf, readingsOf, rounded, stepOf } from '../src/plot/threshold';

type Numbers = (number | null)[];

function field(name: string, min: Numbers, max: Numbers = min): Field {
  return { name, boolean: false, min, max, mean: min, count: min.map((value) => (value === null ? 0 : 1)), last: { time: 0, value: 0 } };
}

function answer(fields: Field[], others: string[] = []): Answer {
  const source = { machine: 'rover', part: 'main', component: 'door', method: 'Readings', tags: [], sampled: false, others, fields };
  return { from: 0, to: 3000, step: 1000, times: [0, 1000, 2000], sampled: false, more: false, series: [source] };
}

describe('what a trigger reads', () => {
  it.each([
    ['sensor:door:Readings', { type: 'sensor', component: 'door', method: 'Readings' }],
    [' sensor:left:door:Readings ', { type: 'sensor', component: 'left:door', method: 'Readings' }],
    ['rdk:component:sensor:a:b:Readings', { type: 'sensor', component: 'a:b', method: 'Readings' }],
    ['sensor:door', null], ['', null], ['sensor::Readings', null],
  ])('%s', (text, expected) => { expect(readingsOf(text)).toEqual(expected); });

  it('is looked up inside readings at first, as by the server', () => {
    const inner = field('readings.level', [1]), outer = field('level', [2]);
    expect(onlyPath(answer([outer, inner]), 'level').series[0]?.fields).toEqual([inner]);
    expect(onlyPath(answer([outer]), 'level').series[0]?.fields).toEqual([outer]);
    expect(onlyPath(answer([outer]), 'depth').series).toEqual([]);
    const open = { ...field('open', [1]), boolean: true };
    expect(onlyPath(answer([open]), 'open').series).toEqual([]);
    expect(pathsOf(answer([inner, open, outer], ['readings.a.b']))).toEqual(['level', 'a.b']);
  });
});

describe('the level', () => {
  it.each([['30', 30], [' -2.5e3 ', -2500], ['0', 0], ['', null], ['true', null], ['030', null], ['0x10', null], ['1e999', null], ['NaN', null], ['"30"', null]])(
    'of %s is a number only if JSON has it as a number', (text, expected) => { expect(levelOf(text)).toBe(expected); });

  it('moves by round steps', () => {
    expect([stepOf(0, 100), stepOf(0, 260), stepOf(20, 20.9), stepOf(5, 5), stepOf(0, 1e-9), stepOf(-1e6, 1e6)]).toEqual([1, 2, 0.005, 1, 1e-11, 20_000]);
    expect([rounded(0.30000000000000004, 0.1), rounded(31.26, 0.5), rounded(-7, 5)]).toEqual([0.3, 31.5, -5]);
  });

  it('is met by the extremes of each point of the plot', () => {
    const fields = [field('a', [1, null, 5], [3, null, 9]), field('b', [4, 4, null])];
    const met = (operator: string, level: number): number => metOf(fields, operator, level).met;
    expect(metOf(fields, 'gt', 3)).toEqual({ met: 3, all: 4 });
    expect([met('gte', 3), met('gt', 9), met('gte', 9), met('lt', 1), met('lte', 1)]).toEqual([4, 0, 1, 0, 1]);
    expect([met('eq', 4), met('neq', 4), met('regex', 4)]).toEqual([2, 2, 0]);
  });
});

import { describe, expect, it } from 'vitest';
import { lineOf, ordered, textsOf, took, type Answer, type Column, type Value } from '../src/sql/answer';
import { axesOf, plotted } from '../src/sql/chart';
import { LONGEST, MOST, readPast, withPast, writePast } from '../src/sql/past';

const answer = (columns: readonly (readonly [string, string, Column['kind']])[], rows: readonly (readonly Value[])[]): Answer => ({
  columns: columns.map(([name, type, kind]) => ({ name, type, kind })), rows, count: rows.length,
});
const HOUR = 3_600_000;
const hourly = answer(
  [['hour', 'TIMESTAMP', 'time'], ['component_name', 'VARCHAR', 'text'], ['celsius', 'DOUBLE', 'number'], ['n', 'BIGINT', 'number']],
  [[0, 'a', 20, 1], [0, 'b', 30, 2], [HOUR, 'a', 21, 1], [HOUR, 'b', null, 2]],
);

describe('values as text', () => {
  it('rounds numbers, and writes dates without a zone', () => {
    const texts = answer([['n', 'DOUBLE', 'number'], ['d', 'DATE', 'time'], ['j', 'JSON', 'json'], ['b', 'BOOLEAN', 'boolean']], [[1 / 3, 0, { a: [1] }, true]]);
    expect(texts.columns.map((_, at) => textsOf(texts, at)(texts.rows[0]?.[at] ?? null))).toEqual(['0.3333333333', '1970-01-01', '{"a":[1]}', 'true']);
  });

  it('shows milliseconds only where a time has some', () => {
    const times = answer([['t', 'TIMESTAMP', 'time']], [[0], [1500]]);
    expect(textsOf(times, 0)(1500)).toMatch(/:01\.500$/);
    expect(textsOf(hourly, 0)(HOUR)).toMatch(/:00:00$/);
  });

  it('cuts long texts', () => {
    expect(textsOf(hourly, 1)('x'.repeat(400))).toHaveLength(302);
  });

  it('orders rows with nothing last', () => {
    const rows = [[2], [null], [10], [1]];
    expect(ordered(rows, 0, false)).toEqual([[1], [2], [10], [null]]);
    expect(ordered(rows, 0, true)).toEqual([[10], [2], [1], [null]]);
    expect(ordered([['b'], ['a'], [{ z: 1 }]], 0, false)).toEqual([['a'], ['b'], [{ z: 1 }]]);
  });

  it('refuses other lines', () => {
    expect(() => lineOf('[]')).toThrow('neither');
    expect(lineOf('{"stage":"running","percent":3}')).toEqual({ stage: 'running', percent: 3 });
    expect([took(1234), took(61_000)]).toEqual(['1.2 s', '61 s']);
  });
});

describe('an answer as a chart', () => {
  it('has the first time against numbers, and a line for each text where times repeat', () => {
    expect(axesOf(hourly)).toEqual({ x: 0, y: [2, 3], by: 1 });
    const [celsius, rest] = plotted(hourly, axesOf(hourly));
    expect(celsius?.chart.unit.symbol).toBe('°C');
    expect(celsius?.chart.lines.map((line) => [line.name, line.field.mean])).toEqual([['a', [20, 21]], ['b', [30, null]]]);
    expect(celsius?.answer.times).toEqual([0, HOUR]);
    expect(rest?.chart.title).toBe('n');
  });

  it('has bands where a place has several values', () => {
    const [drawn] = plotted(hourly, { x: 0, y: [2], by: null });
    expect(drawn?.chart.lines[0]?.field).toMatchObject({ min: [20, 21], max: [30, 21], mean: [25, 21], count: [2, 1] });
  });

  it('has numbers or rows on its horizontal axis without times', () => {
    const numbers = answer([['x', 'BIGINT', 'number'], ['y', 'DOUBLE', 'number']], [[5, 1], [6, 2]]);
    expect(axesOf(numbers)).toEqual({ x: 0, y: [1], by: null });
    const [drawn] = plotted(numbers, axesOf(numbers));
    expect(drawn?.answer.times.map((time) => drawn.answer.xText?.(time, 1))).toEqual(['5', '6']);
    const [rows] = plotted(numbers, { x: null, y: [1], by: null });
    expect(rows?.answer.times.map((time) => rows.answer.xText?.(time, 1))).toEqual(['1', '2']);
  });

  it('has nothing without numbers', () => {
    const texts = answer([['t', 'TIMESTAMP', 'time'], ['s', 'VARCHAR', 'text']], [[0, 'a']]);
    expect(plotted(texts, axesOf(texts))).toEqual([]);
    expect(plotted(answer([['n', 'DOUBLE', 'number']], [[null]]), { x: null, y: [0], by: null })).toEqual([]);
  });

  it('leaves out lines beyond the limit', () => {
    const many = answer([['t', 'TIMESTAMP', 'time'], ['s', 'VARCHAR', 'text'], ['n', 'DOUBLE', 'number']], Array.from({ length: 40 }, (_, at) => [0, String(at), at]));
    expect(axesOf(many).by).toBe(null);
    expect(plotted(many, { x: 0, y: [2], by: 1 })[0]?.more).toBe(16);
  });
});

describe('the history', () => {
  const entry = (query: string, at: number) => ({ query, organization: 'o', at, rows: 1 });

  it('keeps the last queries once', () => {
    let past = withPast([], entry('a', 1));
    past = withPast(withPast(past, entry('b', 2)), entry('a', 3));
    expect(past.map(({ query, at }) => [query, at])).toEqual([['a', 3], ['b', 2]]);
    for (let at = 0; at < 100; at += 1) past = withPast(past, entry(String(at), at));
    expect(past).toHaveLength(MOST);
    expect(withPast(past, entry('x'.repeat(LONGEST + 1), 1))).toEqual(past);
  });

  it('reads only what it has written', () => {
    writePast([entry('a', 1)]);
    expect(readPast()).toEqual([entry('a', 1)]);
    localStorage.setItem('sql-history', '[{"query": 1}, null, 3]');
    expect(readPast()).toEqual([]);
    localStorage.setItem('sql-history', '{');
    expect(readPast()).toEqual([]);
    writePast([]);
    expect(localStorage.getItem('sql-history')).toBe(null);
  });
});

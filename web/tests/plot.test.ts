import { describe, expect, it } from 'vitest';
import { csvOf } from '../src/plot/csv';
import { bucketText, description } from '../src/plot/describe';
import { fixed, isLive, lengthText, moved, pauseOf, scaled, spanAt, tickTexts, timeText, utcMinutes } from '../src/plot/ranges';
import { answerOf, chartsOf, extremes, hasBand, isolated, nextIndex, pointsOf, withGaps, type Answer, type Field, type Source } from '../src/plot/series';
import { numberText, quantity, tickText, unitOf } from '../src/base/units';

type Numbers = (number | null)[];

function field(name: string, mean: Numbers, more: Partial<Field> = {}): Field {
  const last = mean.findLast((value) => value !== null) ?? 0;
  return { name, boolean: false, min: mean, max: mean, mean, count: mean.map((value) => (value === null ? 0 : 1)), last: { time: 0, value: last }, ...more };
}

function source(component: string, fields: Field[], more: Partial<Source> = {}): Source {
  return { machine: 'rover', part: 'main', component, method: 'Readings', tags: [], sampled: false, others: [], fields, ...more };
}

function answer(series: Source[], times: number[] = [0, 1000, 2000]): Answer {
  return { from: 0, to: 3000, step: 1000, times, sampled: false, more: false, series };
}

describe('units', () => {
  it.each([
    ['temperature_celsius', '°C'], ['readings.Depth_mm', 'mm'], ['motor_rpm', 'rpm'], ['celsius', '°C'], ['a.b.volts', 'V'],
    ['m', ''], ['ms', ''], ['level', ''], ['constructor', ''], ['x_constructor', ''], ['x_toString', ''], ['', ''],
  ])('%s is in %s', (name, symbol) => { expect(unitOf(name).symbol).toBe(symbol); });

  it('writes numbers with six digits', () => {
    expect([0, -3, 1.23456789, 1e20, 1 / 3].map(numberText)).toEqual(['0', '-3', '1.23457', '100000000000000000000', '0.333333']);
    expect(quantity(21.5, unitOf('x_celsius'))).toBe('21.5 °C');
    expect(quantity(3, unitOf('x'))).toBe('3');
    expect(quantity(99.40461, unitOf('load_percent'))).toBe('99.4 %');
    expect([61.5465, 0.463131, 12345.678].map((value) => quantity(value, unitOf('x_ms')))).toEqual(['61.55 ms', '0.4631 ms', '12345.7 ms']);
    expect(quantity(52.516275, unitOf('latitude_degrees'))).toBe('52.5163 °');
    expect(quantity(6672340, unitOf('received_bps'))).toBe('6.672 Mbit/s');
    expect([9999, -25000, 3e9, 0, 2e20].map((value) => quantity(value, unitOf('free_bytes')))).toEqual(['9999 B', '-25 kB', '3 GB', '0 B', '200000 PB']);
    expect([0, 500000, 5e8].map((tick) => tickText(tick, unitOf('received_bps')))).toEqual(['0', '500 k', '500 M']);
    expect(tickText(123456, unitOf('x'))).toBe('123456');
  });
});

describe('points', () => {
  it('are not more than the pixels of a chart', () => {
    expect([pointsOf(1200, 1), pointsOf(1200, 2), pointsOf(1200, null), pointsOf(700, 5)]).toEqual([1200, 600, 600, 700]);
    expect([pointsOf(0, 1), pointsOf(9000, 1)]).toEqual([200, 2000]);
  });
});

describe('ranges', () => {
  it('follows the time only if it ends now', () => {
    expect(spanAt({ kind: 'now', length: 500 }, 2000)).toEqual({ from: 1500, to: 2000 });
    expect(spanAt({ kind: 'default' }, 2000)).toBeNull();
    expect(isLive({ kind: 'now', length: 500 }, null, 0)).toBe(true);
    expect(isLive(fixed(0, 500), 500, 500)).toBe(false);
    expect(isLive({ kind: 'default' }, 1_000_000, 1_500_000)).toBe(true);
    expect(isLive({ kind: 'default' }, 1_000_000, 1_700_000)).toBe(false);
    expect(isLive({ kind: 'default' }, -Infinity, 0)).toBe(false);
    expect([null, 10, 10_000, 1e9].map(pauseOf)).toEqual([3000, 3000, 10_000, 60_000]);
  });

  it('becomes whole minutes in UTC around it', () => {
    const start = Date.UTC(2026, 0, 5, 7, 8, 9, 10);
    expect(utcMinutes({ from: start, to: start + 60_000 })).toBe('from=2026-01-05T07%3A08&to=2026-01-05T07%3A10');
    expect(utcMinutes({ from: start - 9010, to: start - 9010 + 120_000 })).toBe('from=2026-01-05T07%3A08&to=2026-01-05T07%3A10');
  });

  it('moves and zooms', () => {
    const span = { from: 1000, to: 2000 };
    expect(moved(span, 0.5)).toEqual({ kind: 'fixed', from: 1500, to: 2500 });
    expect(scaled(span, 2)).toEqual({ kind: 'fixed', from: 500, to: 2500 });
    expect(fixed(2000, 1000)).toEqual({ kind: 'fixed', ...span });
    expect(fixed(5, 5)).toEqual({ kind: 'fixed', from: 5, to: 15 });
  });

  it('writes local times as precisely as needed', () => {
    const time = new Date(2026, 0, 5, 7, 8, 9, 10).getTime();
    expect(timeText(time, 1)).toBe('2026-01-05 07:08:09.010');
    expect(timeText(time, 1000)).toBe('2026-01-05 07:08:09');
    expect(timeText(time, 60_000)).toBe('2026-01-05 07:08');
    expect(timeText(time, 86_400_000)).toBe('2026-01-05');
    const hour = 3_600_000, evening = new Date(2026, 0, 5, 23).getTime();
    expect(tickTexts([evening, evening + hour, evening + 2 * hour], hour)).toEqual(['23:00\n01-05', '00:00\n01-06', '01:00']);
    expect(tickTexts([evening], 24 * hour)).toEqual(['01-05']);
    expect(tickTexts([evening], 28 * 24 * hour)).toEqual(['2026-01']);
    expect([0.5, 20, 1500, 120_000, 86_400_000].map(lengthText)).toEqual(['500 µs', '20 ms', '1.5 s', '2 min', '1 d']);
  });
});

describe('series', () => {
  it('puts fields that name a chart into it', () => {
    const lines = { chart: 'log lines' };
    const charts = chartsOf(answer([source('', [field('error', [1], { ...lines, label: 'errors' }), field('info', [2], lines), field('load', [3])])]));
    expect(charts.map((chart) => [chart.title, chart.unit.symbol, ...chart.lines.map((line) => line.name)])).toEqual([['log lines', '', 'errors', 'info'], ['load', '', 'load']]);
  });

  it('shows the words of a field, and takes the unit from its name', () => {
    const [chart] = chartsOf(answer([source('', [field('server_memory_mb', [1], { label: 'memory' })])]));
    expect([chart?.title, chart?.unit.symbol, chart?.lines[0]?.name]).toEqual(['memory', 'MB', 'memory']);
  });

  it('puts lines of the same unit or name into one chart, with names that differ', () => {
    const result = chartsOf(answer([
      source('a', [field('readings.in_celsius', [1]), field('readings.on', [1], { boolean: true }), field('readings.level', [1])]),
      source('b', [field('readings.out_celsius', [2]), field('readings.level', [2])]),
    ]));
    expect(result.map((chart) => [chart.title, chart.unit.symbol, chart.lines.map((line) => line.name)])).toEqual([
      ['temperature', '°C', ['a in_celsius', 'b out_celsius']], ['a on', '', ['a on']], ['level', '', ['a level', 'b level']],
    ]);
    const machines = chartsOf(answer([source('a', [field('x', [1])]), source('a', [field('x', [1])], { machine: 'digger', tags: ['t'] })]));
    expect(machines[0]?.lines.map((line) => line.name)).toEqual(['rover · a x', 'digger · a · t x']);
    expect(() => answerOf({ error: 'x' })).toThrow(TypeError);
  });

  it('interrupts a line only in gaps that are longer than usual', () => {
    expect(withGaps([1, null, 2, null, 3, null, null, null, null, null, null, 4, null, 5])).toEqual(
      [1, undefined, 2, undefined, 3, null, null, null, null, null, null, 4, undefined, 5]);
    expect(withGaps([null, 1, 2, 3, null, null, null, 4, 5])).toEqual([null, 1, 2, 3, null, null, null, 4, 5]);
    expect(withGaps([null, null])).toEqual([null, null]);
    expect(isolated([1, null, 2, undefined, 3, null, 4])).toEqual([0, 6]);
    expect(isolated([null, 7, null])).toEqual([1]);
  });

  it('knows extremes, bands and the next number', () => {
    const banded = field('x', [2, null, 5], { min: [1, null, 5], max: [3, null, 9], count: [2, 0, 4] });
    expect(extremes(banded)).toEqual({ low: 1, high: 9, count: 6 });
    expect(extremes(field('x', [null]))).toBeNull();
    expect([hasBand(banded), hasBand(field('x', [1, null]))]).toEqual([true, false]);
    const [chart] = chartsOf(answer([source('a', [banded])]));
    if (!chart) throw new Error('no chart');
    expect([nextIndex(chart, 0, 1, 3), nextIndex(chart, 2, 1, 3), nextIndex(chart, 3, -1, 3)]).toEqual([2, 2, 2]);
    expect(description(chart, 0, 3000, 1000)).toContain('a x: 6 numbers from 1 to 9, last 5');
    expect(bucketText(chart, [0, 1000, 2000], 0, 1000)).toContain('a x: 2, from 1 to 3');
    expect(bucketText(chart, [0, 1000, 2000], 1, 1000)).toContain('a x: nothing');
  });
});

describe('CSV', () => {
  it('has a row for each bucket with numbers, and no formula', () => {
    const charts = chartsOf(answer([source('=a,"b"', [field('x', [1, null, 2.5])])]));
    expect(csvOf(charts, [0, 1000, 2000])).toBe([
      `time,${['mean', 'min', 'max', 'count'].map((what) => `"'=a,""b"" x ${what}"`).join(',')}`,
      '1970-01-01T00:00:00.000Z,1,1,1,1', '1970-01-01T00:00:02.000Z,2.5,2.5,2.5,1', '',
    ].join('\r\n'));
  });
});

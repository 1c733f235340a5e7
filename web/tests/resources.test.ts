import { expect, it } from 'vitest';
import { arranged, key, parseLayout, sorted, word } from '../src/control/resources';
import { functionOf, ROWS } from '../src/base/header';
import { flat, said, shown } from '../src/control/values';

const motor = { name: 'left', api: 'component:motor' };
const base = { name: 'rover', api: 'component:base' };
const shell = { name: 'shell', api: 'service:shell' };

it('shows what a person drives first, and lists what has no card', () => {
  expect(sorted([motor, shell, base])).toEqual({ cards: [base, motor], others: [shell] });
});

it('keeps the place of cards that the layout does not name', () => {
  expect(arranged([base, motor], { hidden: [], order: [key(motor)] })).toEqual([motor, base]);
  expect(arranged([base, motor], { hidden: [], order: [] })).toEqual([base, motor]);
});

it.each([[null], ['{'], ['[]'], ['{"hidden": 1, "order": {}}'], ['null']])('takes the stored layout %s for none', (text) => {
  expect(parseLayout(text)).toEqual({ hidden: [], order: [] });
});

it('reads what it has stored, without odd entries', () => {
  expect(parseLayout('{"hidden": ["a", 1], "order": ["b"]}')).toEqual({ hidden: ['a'], order: ['b'] });
});

it('words an API', () => { expect(word('component:movement_sensor')).toBe('movement sensor'); });

it.each([[21.0123, '21.01'], [0, '0'], [-0.5, '-0.5'], [123456, '123456'], [2.5e10, '2.50e+10'], [0.00001, '1.00e-5'], [NaN, '–'], [999.96, '1000']])(
  'shows %d as %s', (value, text) => { expect(shown(value)).toBe(text); });

it('flattens readings of any structure, and bounds them', () => {
  expect(flat({ a: { b: 1 }, ok: true, name: 'x', none: null }).map(({ path, text }) => `${path}=${text}`)).toEqual(['a.b=1', 'ok=yes', 'name=x', 'none=–']);
  expect(flat(Array.from({ length: 1000 }, (_, index) => index))).toHaveLength(60);
  expect(flat('y'.repeat(1000))[0]?.text).toHaveLength(200);
});

it('says an error without the code of gRPC, and the cause of an error of the SDK', () => {
  expect(said(new Error('[not_found] there is no motor'))).toBe('there is no motor');
  expect(said(new Error('all failed', { cause: [new Error('first'), new Error('[unavailable] last')] }))).toBe('last');
  expect(said('text')).toBe('text');
});

it('has the published header', () => {
  const pins = ROWS.flat();
  expect(pins).toHaveLength(40);
  const lines = pins.map(functionOf).filter((use) => use.kind === 'gpio');
  expect(lines).toHaveLength(28);
  expect(new Set(lines.map((use) => use.name.split(',')[0])).size).toBe(28);
  expect(pins.map(functionOf).filter((use) => use.kind === 'ground')).toHaveLength(8);
  expect(functionOf(11).name).toBe('GPIO17');
  expect(functionOf(99).name).toBe('');
});

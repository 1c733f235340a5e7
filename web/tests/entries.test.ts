import { describe, expect, it } from 'vitest';
import { applied } from '../src/code/edits';
import { entryPath, freeName, namesOf, pathOf, references, renaming, sections, takenPins } from '../src/code/entries';
import { begun, fieldAt, modelOf, shown, standsFor, typed, type Schema } from '../src/code/fields';
import { nodeAt, parse } from '../src/code/tree';

const text = { kind: 'text' } as const;
const schema: Schema = {
  sections: {
    components: { kind: 'list', of: { kind: 'group', fields: { name: text, frame: { kind: 'group', fields: { parent: { kind: 'text', names: 'frame' } } } } } },
    jobs: { kind: 'list', of: { kind: 'group', fields: { resource: { kind: 'text', names: '*' } } } },
    network: { kind: 'group', fields: { no_tls: { kind: 'switch' } } },
  },
  models: [
    { api: 'rdk:component:board', word: 'fake', section: 'components', about: '', simulated: true, fields: {} },
    {
      api: 'rdk:component:motor', word: 'gpio', section: 'components', about: '', simulated: false,
      fields: {
        board: { kind: 'text', names: 'rdk:component:board', required: true },
        max_rpm: { kind: 'number' },
        pins: { kind: 'group', required: true, fields: { a: { kind: 'text', pins: 'pin' }, step: { kind: 'text', pins: 'pin', required: true } } },
      },
    },
  ],
  apis: {},
};
const DOCUMENT = `{
  "components": [
    {"name": "pi", "api": "rdk:component:board", "model": "fake"}, // the header
    {"name": "left", "api": "component:motor", "model": "gpio", "attributes": {"board": "pi", "max_rpm": 1e3, "pins": {"a": "11"}},
     "depends_on": ["rdk:component:board/pi"], "frame": {"parent": "pi"}},
    {"name": "other", "api": "rdk:component:motor", "model": "acme:wheels:one", "attributes": {"b": {"c": ["pi", "pin"]}}}
  ],
  "jobs": [{"name": "pi", "resource": "pi"}],
  "network": {"no_tls": true}, "debug": true
}`;
const root = parse(DOCUMENT);

describe('the list', () => {
  it('has the entries by section, and the settings last', () => {
    expect(sections(DOCUMENT, root).map(({ name, entries }) => [name, entries.map((each) => each.name)])).toEqual([
      ['components', ['pi', 'left', 'other']], ['jobs', ['pi']], ['settings', ['network', 'debug']],
    ]);
    expect(sections('', undefined)).toEqual([]);
    expect(sections('{"components": [5, {', parse('{"components": [5, {'))[0]?.entries).toHaveLength(2);
  });

  it('knows the entry of a path', () => {
    expect(entryPath(root, ['components', 1, 'attributes', 'board'])).toEqual(['components', 1]);
    expect(entryPath(root, ['network', 'no_tls'])).toEqual(['network']);
    expect(entryPath(root, ['components'])).toEqual([]);
    expect(pathOf(root, 'components.1.attributes.pins.b')).toEqual(['components', 1, 'attributes', 'pins', 'b']);
  });
});

describe('a field', () => {
  it('is that of the model', () => {
    expect(modelOf(schema, DOCUMENT, root, ['components', 1])?.word).toBe('gpio');
    expect(fieldAt(schema, DOCUMENT, root, ['components', 1, 'attributes', 'pins', 'a']).pins).toBe('pin');
    expect(fieldAt(schema, DOCUMENT, root, ['components', 2, 'attributes', 'b']).kind).toBe('json');
    expect(fieldAt(schema, DOCUMENT, root, ['network', 'no_tls']).kind).toBe('switch');
  });

  it('shows numbers as they are written, and writes what was typed', () => {
    expect(shown(DOCUMENT, nodeAt(root, ['components', 1, 'attributes', 'max_rpm']))).toBe('1e3');
    expect(typed({ kind: 'number' }, ' 1.50 ', '')).toBe('1.50');
    expect(typed({ kind: 'number' }, 'fast', '1')).toBe('"fast"');
    expect(typed({ kind: 'number' }, '01', '1')).toBe('"01"');
    expect(typed({ kind: 'text' }, '11', '"12"')).toBe('"11"');
    expect(typed({ kind: 'text', also_number: true }, '1', '0')).toBe('1');
    expect(typed({ kind: 'text', also_number: true }, '1', '"0"')).toBe('"1"');
    expect(typed({ kind: 'duration' }, '30s', '30')).toBe('"30s"');
  });

  it('leaves what stands for something else', () => {
    const other = '{"a": {"$variable": "speed"}, "b": "${environment.HOME}/x", "c": "$5"}';
    expect(['a', 'b', 'c'].map((key) => standsFor(other, nodeAt(parse(other), [key])))).toEqual([true, true, false]);
  });

  it('begins with what is required', () => {
    expect(begun(schema.models[1]?.fields ?? {}, (api) => namesOf(DOCUMENT, root, api))).toEqual({ board: 'pi', pins: { step: '' } });
  });
});

describe('a resource', () => {
  const places = references(schema, DOCUMENT, root, 'pi');

  it('is named in fields that are references', () => {
    expect(places.map((each) => each.place)).toEqual(['left › board', 'left › depends_on › 0', 'left › frame › parent', 'other › b › c › 0', 'pi › resource']);
    expect(namesOf(DOCUMENT, root, 'rdk:component:motor')).toEqual(['left', 'other']);
    expect(freeName(DOCUMENT, root, 'left')).toBe('left-2');
  });

  it('is renamed with its references, and nothing else changes', () => {
    const after = applied(DOCUMENT, renaming(DOCUMENT, root, ['components', 0], 'zero', places));
    expect(after).toBe(DOCUMENT.replace('"name": "pi"', '"name": "zero"').replace('"board": "pi"', '"board": "zero"').replace('board/pi', 'board/zero')
      .replace('"parent": "pi"', '"parent": "zero"').replace('["pi"', '["zero"').replace('"resource": "pi"', '"resource": "zero"'));
    expect(references(schema, after, parse(after), 'pi')).toEqual([]);
  });

  it('uses pins of its board', () => {
    expect(takenPins(schema, DOCUMENT, root, 'pi')).toEqual([{ pin: '11', by: 'left › pins › a', path: 'components.1.attributes.pins.a' }]);
    expect(takenPins(schema, DOCUMENT, root, 'none')).toEqual([]);
  });
});

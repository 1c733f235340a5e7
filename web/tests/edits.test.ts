import { describe, expect, it } from 'vitest';
import { applied, removing, setting, type Value } from '../src/code/edits';
import { commentEnd, nodeAt, parse, pathAt, raw, valueOf, type Node, type Path } from '../src/code/tree';

const set = (text: string, path: Path, value: unknown): string => applied(text, setting(text, path, { value }) ?? []);
const remove = (text: string, path: Path): string => applied(text, removing(text, path));

const ROVER = `{
  // the rover in the shed
  "components": [
    {
      "name": "left", /* the front */
      "attributes": {"max_rpm": 1e3, "zero": 1.0} // keep
    }
  ],
  "debug" : true
}
`;

describe('a value', () => {
  it('is replaced where it is written', () => {
    expect(set(ROVER, ['components', 0, 'attributes', 'max_rpm'], 60)).toBe(ROVER.replace('1e3', '60'));
    expect(set(ROVER, ['debug'], false)).toBe(ROVER.replace('"debug" : true', '"debug" : false'));
  });

  it('keeps the spelling of a person', () => {
    expect(applied(ROVER, setting(ROVER, ['components', 0, 'attributes', 'max_rpm'], { json: '1.50' }) ?? [])).toContain('"max_rpm": 1.50,');
  });

  it('is added in the style of its neighbours', () => {
    expect(set(ROVER, ['components', 0, 'attributes', 'pins'], { a: '11' })).toContain('"zero": 1.0, "pins": {"a": "11"}} // keep');
    expect(set(ROVER, ['components', 0, 'model'], 'fake')).toContain('"zero": 1.0}, // keep\n      "model": "fake"\n    }');
    expect(set(ROVER, ['network'], { no_tls: true })).toContain('"debug" : true,\n  "network" : {\n    "no_tls": true\n  }\n}');
    expect(set('{"a":1}', ['b'], 2)).toBe('{"a":1, "b":2}');
  });

  it('is added with the objects that are missing', () => {
    expect(set('{}', ['network', 'no_tls'], true)).toBe('{\n  "network": {\n    "no_tls": true\n  }\n}');
    expect(set('', ['debug'], true)).toBe('{\n  "debug": true\n}\n');
    expect(set('{\n  "components": []\n}', ['components', 0], { name: 'a' })).toBe('{\n  "components": [\n    {\n      "name": "a"\n    }\n  ]\n}');
    expect(set('{\n  "a": { // nothing yet\n  }\n}', ['a', 'b'], 1)).toBe('{\n  "a": { // nothing yet\n    "b": 1\n  }\n}');
  });

  it('is not put where a person is still writing', () => {
    expect(setting('{"a": }', ['a'], { value: 1 })).toBeUndefined();
    expect(setting('{"a": 5}', ['a', 'b'], { value: 1 })).toBeUndefined();
  });

  it('of a repeated key is the last one', () => {
    expect(set('{"a": 1, "a": 2}', ['a'], 3)).toBe('{"a": 1, "a": 3}');
  });
});

describe('a key', () => {
  it('is taken away with its comma and its line', () => {
    expect(remove(ROVER, ['debug'])).toBe(ROVER.replace('],\n  "debug" : true', ']'));
    expect(remove('{"a": 1, "b": 2, "c": 3}', ['b'])).toBe('{"a": 1, "c": 3}');
    expect(remove('{"a": 1, "b": 2}', ['b'])).toBe('{"a": 1}');
    expect(remove('{"a": 1}', ['a'])).toBe('{}');
    expect(remove('{\n  "a": 1\n}', ['a'])).toBe('{}');
    expect(remove('[1, 2, 3]', [1])).toBe('[1, 3]');
  });

  it('leaves the comments around it', () => {
    expect(remove('{\n  // about a\n  "a": 1, // here\n  "b": 2\n}', ['a'])).toBe('{\n  // about a\n  // here\n  "b": 2\n}');
    expect(remove('{\n  "a": 1, // one\n  "b": 2 // two\n}', ['b'])).toBe('{\n  "a": 1 // one\n  // two\n}');
    expect(remove('{ /* none */ "a": 1 }', ['a'])).toBe('{ /* none */ }');
  });

  it('is taken away with all of its name', () => {
    expect(remove('{"a": 1, "b": 0, "a": 2}', ['a'])).toBe('{"b": 0}');
  });
});

describe('the tree', () => {
  it('is as good as the text', () => {
    expect(parse('')).toBeUndefined();
    for (const text of ['{', '{"a', '{"a":', '[1, {"b": ', '{"a": 1 "b": 2}', '/* ', '{"a": }', '}{', '"\\']) expect(() => parse(text)).not.toThrow();
    const text = '{"a": }, "b"';
    expect(parse(text)?.members.map((each) => each.name)).toEqual(['a']);
  });

  it('tells the path of a position', () => {
    expect(pathAt(parse(ROVER), ROVER.indexOf('1e3'))).toEqual(['components', 0, 'attributes', 'max_rpm']);
    expect(pathAt(parse(ROVER), ROVER.indexOf('"debug') + 2)).toEqual(['debug']);
    expect(pathAt(parse(ROVER), 0)).toEqual([]);
  });

  it('of a megabyte takes a moment', () => {
    const entry = { name: 'left', api: 'rdk:component:motor', model: 'gpio', attributes: { board: 'local', notes: 'x'.repeat(900), pins: { a: '11' } } };
    const text = JSON.stringify({ components: Array.from({ length: 1000 }, () => entry) }, undefined, 2);
    expect(text.length).toBeGreaterThan(1e6);
    parse(text);
    const before = performance.now();
    expect(parse(text)?.members[0]?.value?.items.length).toBe(1000);
    expect(performance.now() - before).toBeLessThan(200);
  });
});

// ---- for any document: an edit changes one value, and not one other byte

class Random {
  constructor(private state: number) {}
  below(most: number): number {
    this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.state / 2 ** 32) * most);
  }
  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

const WORDS = ['1.0', '1e3', '-0', '12345678901234567890', 'true', 'null', '"\\u00e9 // no"', '"/* no */"', '"a\\"b"', '"🤖"', '""'];
const KEYS = ['a', 'b', 'name', '1', 'é', 'a.b', '$variable', 'a "quoted" key'];

function gap(random: Random): string {
  return random.of(['', '', ' ', '\n  ', '\t', ' /* c */ ', ' // d\n', '\n\n', '/**/']);
}

function text(random: Random, depth: number): string {
  const space = (): string => gap(random);
  if (depth === 0 || random.below(3) === 0) return random.of(WORDS);
  const many = random.below(4);
  const parts = Array.from({ length: many }, () => space() + text(random, depth - 1) + space());
  if (random.below(2) === 0) return `[${parts.join(',') || space()}]`;
  return `{${parts.map((each) => `${space()}${JSON.stringify(random.of(KEYS))}${space()}:${each}`).join(',') || space()}}`;
}

function paths(node: Node | undefined, path: Path = []): Path[] {
  if (node === undefined) return [];
  const names = [...new Set(node.members.map((each) => each.name))];
  const inner = node.kind === 'array' ? node.items.flatMap((each, at) => paths(each, [...path, at])) : names.flatMap((name) => paths(nodeAt(node, [name]), [...path, name]));
  return path.length > 0 ? [path, ...inner] : inner;
}

function comments(of: string): string[] {
  const list: string[] = [];
  for (let at = 0; at < of.length; at++) {
    if (of[at] === '"') {
      for (at++; of[at] !== '"'; at++) if (of[at] === '\\') at++;
      continue;
    }
    const end = commentEnd(of, at);
    if (end === at) continue;
    list.push(of.slice(at, end));
    at = end - 1;
  }
  return list;
}

/** The text of every plain value, by its path. */
function spellings(of: string): Map<string, string> {
  const root = parse(of);
  return new Map(paths(root).flatMap((path) => {
    const node = nodeAt(root, path);
    return node === undefined || node.kind === 'object' || node.kind === 'array' ? [] : [[JSON.stringify(path), raw(of, node)]];
  }));
}

/** The text with spaces in place of what a path names: all members of that name, or one item. */
function without(of: string, path: Path): string {
  const parent = nodeAt(parse(of), path.slice(0, -1));
  const spans = parent?.kind === 'object' ? parent.members.filter((each) => each.name === path.at(-1)).map((each) => [each.key.start, each.value?.end ?? 0] as const) : [parent?.items[Number(path.at(-1))]].map((each) => [each?.start ?? 0, each?.end ?? 0] as const);
  return spans.reduce((result, [start, end]) => result.slice(0, start) + ' '.repeat(end - start) + result.slice(end), of);
}

const plain = (of: string): unknown => {
  const root = parse(of);
  return root && valueOf(of, root);
};

function withValue(value: unknown, path: Path, next: { readonly value?: unknown }): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return next.value;
  if (Array.isArray(value)) {
    const items: unknown[] = [...(value as unknown[])];
    if (rest.length === 0 && !('value' in next)) items.splice(Number(step), 1);
    else items[Number(step)] = withValue(items[Number(step)], rest, next);
    return items;
  }
  const object = value as Record<string, unknown>;
  const entries = Object.entries(object).filter(([key]) => key !== step);
  return Object.fromEntries(rest.length === 0 && !('value' in next) ? entries : [...entries, [step, withValue(object[String(step)], rest, next)]]);
}

describe('an edit of any document', () => {
  const ROUNDS = 3000;
  const documents = Array.from({ length: ROUNDS }, (_, seed) => {
    const random = new Random(seed + 1);
    return { random, before: `${gap(random)}{${gap(random)}"r"${gap(random)}:${text(random, 4)},"s":${text(random, 3)}${gap(random)}}${gap(random)}` };
  });

  it('sets one value and leaves every other byte', () => {
    for (const { random, before } of documents) {
      const path = random.of(paths(parse(before)));
      const next: Value = { json: random.of(['7', '"fast"', 'true', '{"deep": [1.0]}']) };
      const changes = setting(before, path, next) ?? [];
      expect(changes).toHaveLength(1);
      const node = nodeAt(parse(before), path);
      expect(changes[0]).toEqual({ from: node?.start, to: node?.end, insert: next.json });
      expect(plain(applied(before, changes))).toEqual(withValue(plain(before), path, { value: JSON.parse(next.json) }));
    }
  });

  it('adds one key and leaves all values and comments', () => {
    for (const { random, before } of documents) {
      const parents = [[], ...paths(parse(before))].filter((path) => nodeAt(parse(before), path)?.kind === 'object');
      const path = [...random.of(parents), 'new'];
      const after = set(before, path, { deep: true });
      expect(plain(after), before).toEqual(withValue(plain(before), path, { value: { deep: true } }));
      expect(comments(after)).toEqual(comments(before));
      const spelled = spellings(after);
      for (const [key, value] of spellings(before)) expect(spelled.get(key)).toBe(value);
    }
  });

  it('adds one item and leaves all values and comments', () => {
    for (const { random, before } of documents) {
      const lists = paths(parse(before)).filter((path) => nodeAt(parse(before), path)?.kind === 'array');
      if (lists.length === 0) continue;
      const list = random.of(lists);
      const path = [...list, nodeAt(parse(before), list)?.items.length ?? 0];
      const after = set(before, path, 'new');
      expect(plain(after), before).toEqual(withValue(plain(before), path, { value: 'new' }));
      expect(comments(after)).toEqual(comments(before));
    }
  });

  it('takes one key away and leaves all other values and comments', () => {
    for (const { random, before } of documents) {
      const path = random.of(paths(parse(before)));
      const after = remove(before, path);
      expect(plain(after), before).toEqual(withValue(plain(before), path, {}));
      expect(comments(after), before).toEqual(comments(without(before, path)));
    }
  });
});

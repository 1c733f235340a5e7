// Changes of a text of JSON with comments that leave all else as it is written: white space, comments, order of keys,
// spelling of numbers, unknown and repeated keys. Pure.
import type { Change } from './offsets';
import { commentEnd, memberOf, nodeAt, parse, skip, type Member, type Node, type Path } from './tree';

/** Return a text after changes, whose positions are those of the text before. */
export function applied(text: string, changes: readonly Change[]): string {
  return [...changes].sort((a, b) => b.from - a.from || b.to - a.to).reduce((result, { from, to, insert }) => result.slice(0, from) + insert + result.slice(to), text);
}

/** Return JSON for people, as the server writes it: a list of plain values in one line, all else in lines. */
export function written(value: unknown, indent: string, unit: string): string {
  const inner = indent + unit;
  if (Array.isArray(value)) {
    if (value.every((each) => typeof each !== 'object' || each === null)) return `[${value.map((each) => JSON.stringify(each)).join(', ')}]`;
    return `[\n${value.map((each) => inner + written(each, inner, unit)).join(',\n')}\n${indent}]`;
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  if (entries.length === 0) return '{}';
  return `{\n${entries.map(([key, each]) => `${inner}${JSON.stringify(key)}: ${written(each, inner, unit)}`).join(',\n')}\n${indent}}`;
}

/** A value to write: one of JavaScript, or `json`, its text as a person has typed it. */
export type Value = { readonly json: string } | { readonly value: unknown };

class Writer {
  private readonly unit: string;

  constructor(private readonly text: string, private readonly root: Node | undefined) {
    this.unit = /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ';
  }

  private lineStart(at: number): number {
    return this.text.lastIndexOf('\n', at - 1) + 1;
  }

  private indent(at: number): string {
    return /[ \t]*/y.exec(this.text.slice(this.lineStart(at), at))?.[0] ?? '';
  }

  /** Whether only white space is before a position in its line. */
  private begins(at: number): boolean {
    return this.text.slice(this.lineStart(at), at).trim() === '';
  }

  /** Whether what a container has, or would have, is in its lines. */
  private lines(path: Path, node: Node): boolean {
    const first = node.members[0]?.key ?? node.items[0];
    if (first !== undefined) return this.begins(first.start);
    if (path.length === 0) return true;
    const parent = nodeAt(this.root, path.slice(0, -1));
    const own = parent?.kind === 'object' ? memberOf(parent, path.at(-1) ?? '')?.key : node;
    return own !== undefined && this.begins(own.start);
  }

  private json(value: Value, indent: string, lines: boolean): string {
    if ('json' in value) return value.json;
    return lines ? written(value.value, indent, this.unit) : JSON.stringify(value.value).replace(/("(?:[^"\\]|\\.)*")|([:,])/g, (_, quoted: string | undefined, sign: string) => quoted ?? `${sign} `);
  }

  /** Return the changes that put a value at a path, with the objects on the way to it; undefined if it does not fit there. */
  set(path: Path, value: Value): Change[] | undefined {
    let depth = 0;
    let node = this.root;
    if (node === undefined) return this.text.trim() === '' ? [{ from: 0, to: this.text.length, insert: `${this.json(nested(path, value), '', true)}\n` }] : undefined;
    while (depth < path.length) {
      const next = nodeAt(node, [path[depth] ?? '']);
      if (next === undefined) break;
      node = next;
      depth++;
    }
    const rest = path.slice(depth);
    const here = path.slice(0, depth);
    const key = rest[0];
    if (key === undefined) return [{ from: node.start, to: node.end, insert: this.json(value, this.indent(node.start), this.lines(here, node)) }];
    if (node.kind === 'object') {
      const empty = memberOf(node, key);
      if (empty !== undefined) return undefined; // a key without a value: the person is still writing
      return this.insert(here, node, nested(rest.slice(1), value), key);
    }
    if (node.kind === 'array') return Number(key) === node.items.length ? this.insert(here, node, nested(rest.slice(1), value)) : undefined;
    return this.text.slice(node.start, node.end) === 'null' ? [{ from: node.start, to: node.end, insert: this.json(nested(rest, value), this.indent(node.start), true) }] : undefined;
  }

  /** Return the changes that add an item or a member at the end of a container. */
  private insert(path: Path, node: Node, value: Value, key?: string | number): Change[] {
    const lines = this.lines(path, node);
    const parts: readonly (Node | Member)[] = node.kind === 'object' ? node.members : node.items;
    const last = parts.at(-1);
    const outer = this.indent(node.start);
    const indent = last === undefined ? outer + this.unit : this.indent('key' in last ? last.key.start : last.start);
    const colon = this.colon(node);
    const text = (key === undefined ? '' : JSON.stringify(String(key)) + colon) + this.json(value, lines ? indent : outer, lines);
    if (last === undefined) {
      const from = lastComment(this.text, node);
      const closed = /[\]}]/.test(this.text[node.end - 1] ?? '') && node.end > node.start + 1;
      const to = closed ? node.end - 1 : node.end;
      const close = closed ? '' : node.kind === 'object' ? '}' : ']';
      if (!lines && from === node.start + 1) return [{ from, to, insert: text + close }];
      return [{ from, to, insert: `\n${indent}${text}\n${outer}${close}` }];
    }
    const end = 'key' in last ? (last.value ?? last.key).end : last.end;
    const after = skip(this.text, end);
    const comma = this.text[after] === ',' ? after + 1 : end; // a comma that is too much is used
    if (!lines) return comma === end ? [{ from: end, to: end, insert: `, ${text}` }] : [{ from: comma, to: comma, insert: ` ${text}` }];
    const place = this.afterComments(comma);
    const line = { from: place, to: place, insert: `\n${indent}${text}` };
    if (comma !== end) return [line];
    return place === end ? [{ ...line, insert: `,${line.insert}` }] : [{ from: end, to: end, insert: ',' }, line];
  }

  /** Return the end of the comments that follow a position in its line. */
  private afterComments(from: number): number {
    let end = from;
    for (;;) {
      const at = end + (/[ \t]*/y.exec(this.text.slice(end, end + 200))?.[0].length ?? 0);
      const next = commentEnd(this.text, at);
      if (next === at) return end;
      end = next;
    }
  }

  private colon(node: Node): string {
    const last = node.members.findLast((each) => each.value !== undefined);
    const between = last?.value === undefined ? '' : this.text.slice(last.key.end, last.value.start);
    return /^[ \t]*:[ \t]*$/.test(between) ? between : ': ';
  }

  /** Return the changes that take a key, all of its name, or an item away, with one comma each; none if it is not there. */
  remove(path: Path): Change[] {
    const parent = nodeAt(this.root, path.slice(0, -1));
    const name = path.at(-1);
    if (parent === undefined || name === undefined) return [];
    const spans = parent.kind === 'object' ? parent.members.map((each) => ({ start: each.key.start, end: (each.value ?? each.key).end })) : parent.items;
    const leaves = spans.map((_, at) => (parent.kind === 'object' ? parent.members[at]?.name === String(name) : at === Number(name)));
    const kept = leaves.lastIndexOf(false);
    const changes: Change[] = [];
    for (const [at, span] of spans.entries()) {
      if (!leaves[at]) continue;
      const comma = skip(this.text, span.end);
      const follows = this.text[comma] === ',';
      const near = follows && this.text.slice(span.end, comma).trim() === '';
      // comments between a value and its comma stay: then these are two changes
      changes.push(...this.erased(span.start, near ? comma + 1 : span.end, follows && !near ? [comma] : []));
    }
    // the last one leaves: the comma before it has nothing to part any more
    if (kept >= 0 && kept < spans.length - 1) {
      const before = spans[kept];
      const comma = before === undefined ? -1 : skip(this.text, before.end);
      if (this.text[comma] === ',') changes.push({ from: comma, to: comma + 1, insert: '' });
    }
    if (kept < 0 && this.text.slice(parent.start + 1, parent.end - 1).trim() !== '' && lastComment(this.text, parent, true) === parent.start + 1) {
      return [{ from: parent.start + 1, to: parent.end - 1, insert: '' }];
    }
    return merged(changes);
  }

  private erased(start: number, end: number, commas: readonly number[]): Change[] {
    const others = commas.map((at) => ({ from: at, to: at + 1, insert: '' }));
    const lineEnd = this.text.indexOf('\n', end);
    const blank = this.text.slice(end, lineEnd < 0 ? this.text.length : lineEnd).trim() === '';
    if (this.begins(start) && blank && lineEnd >= 0) return [{ from: this.lineStart(start), to: lineEnd + 1, insert: '' }, ...others];
    const space = /[ \t]*/y.exec(this.text.slice(end))?.[0].length ?? 0;
    const next = this.text[end + space];
    if (next === '}' || next === ']') {
      const before = this.text.slice(0, start).length - this.text.slice(0, start).trimEnd().length;
      return [{ from: this.begins(start) ? start : start - before, to: end, insert: '' }, ...others];
    }
    return [{ from: start, to: end + space, insert: '' }, ...others];
  }
}

/** Return deletions without those that overlap: white space between two values that leave belongs to both. */
function merged(changes: readonly Change[]): Change[] {
  const result: Change[] = [];
  for (const change of [...changes].sort((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    if (last !== undefined && change.from < last.to) last.to = Math.max(last.to, change.to);
    else result.push({ ...change });
  }
  return result;
}

/** Return the end of the last comment in a container without values (or, with `all`, with some); after its bracket if it has none. */
function lastComment(text: string, node: Node, all = false): number {
  let end = node.start + 1;
  let at = end;
  while (at < node.end) {
    if (text[at] === '"') {
      const close = /"(?:[^"\\\n]|\\.)*"?/y;
      close.lastIndex = at;
      close.exec(text);
      at = close.lastIndex;
      continue;
    }
    const next = commentEnd(text, at);
    if (next > at) end = at = next;
    else at++;
    if (!all && next === at - 1 && /[^\s,:]/.test(text[at - 1] ?? ' ') && at < node.end) return end;
  }
  return end;
}

function nested(path: Path, value: Value): Value {
  if (path.length === 0) return value;
  let whole: unknown = 'json' in value ? JSON.parse(value.json) : value.value;
  for (const step of [...path].reverse()) whole = typeof step === 'number' ? [whole] : { [step]: whole };
  return { value: whole };
}

/** Return the changes that put a value at a path; undefined if the text there is not ready for it. */
export function setting(text: string, path: Path, value: Value, root: Node | undefined = parse(text)): Change[] | undefined {
  return new Writer(text, root).set(path, value);
}

/** Return the changes that take the value at a path away, with its key. */
export function removing(text: string, path: Path, root: Node | undefined = parse(text)): Change[] {
  return new Writer(text, root).remove(path);
}

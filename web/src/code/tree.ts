// A tolerant parser of JSON with comments, complete or not, into a tree with positions. Pure; never throws.
//
// Positions are UTF-16 units, as those of the editor. Values are decoded only when they are asked for, so that a text of a
// megabyte costs no more than its nodes.

export type Kind = 'object' | 'array' | 'string' | 'word';

export interface Node {
  readonly kind: Kind;
  readonly start: number;
  end: number; // after its last character
  readonly members: Member[];
  readonly items: Node[];
}

export interface Member {
  readonly name: string;
  readonly key: Node;
  value: Node | undefined; // undefined while it is not written yet
}

export type Path = readonly (string | number)[];

const DEPTH = 200; // deeper nesting is not parsed, as by the server
const NONE: never[] = [];
const WORD = /[^\s{}[\]:,"/]+/y;
const SPACE = /\s*/y;

/** Return the position after white space and comments. */
export function skip(text: string, from: number): number {
  let at = from;
  for (;;) {
    SPACE.lastIndex = at;
    SPACE.exec(text);
    at = SPACE.lastIndex;
    const end = commentEnd(text, at);
    if (end === at) return at;
    at = end;
  }
}

/** Return the end of the comment that begins at a position; the position itself if there is none. */
export function commentEnd(text: string, at: number): number {
  if (text[at] !== '/') return at;
  if (text[at + 1] === '/') {
    const end = text.indexOf('\n', at);
    return end < 0 ? text.length : end;
  }
  if (text[at + 1] !== '*') return at;
  const end = text.indexOf('*/', at + 2);
  return end < 0 ? text.length : end + 2;
}

function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 92) at++;
    else if (code === 34) return at + 1;
    else if (code === 10) return at; // not closed: a text ends with its line
  }
  return text.length;
}

class Parser {
  private at = 0;

  constructor(private readonly text: string) {}

  value(depth: number): Node | undefined {
    this.at = skip(this.text, this.at);
    const start = this.at;
    const sign = this.text[start];
    if (sign === '"') {
      this.at = stringEnd(this.text, start);
      return { kind: 'string', start, end: this.at, members: NONE, items: NONE };
    }
    if (sign === '{' || sign === '[') {
      if (depth >= DEPTH) return undefined;
      const node: Node = { kind: sign === '{' ? 'object' : 'array', start, end: start + 1, members: [], items: [] };
      this.at++;
      this.inside(node, sign === '{' ? '}' : ']', depth);
      node.end = this.at;
      return node;
    }
    WORD.lastIndex = start;
    if (WORD.exec(this.text) === null) return undefined;
    this.at = WORD.lastIndex;
    return { kind: 'word', start, end: this.at, members: NONE, items: NONE };
  }

  private inside(node: Node, close: string, depth: number): void {
    for (;;) {
      this.at = skip(this.text, this.at);
      const sign = this.text[this.at];
      if (sign === undefined) return;
      if (sign === close) {
        this.at++;
        return;
      }
      if (sign === '}' || sign === ']') return; // what is outside ends too
      if (sign === ',' || sign === ':' || sign === '/') {
        this.at++;
        continue;
      }
      const child = this.value(depth + 1);
      if (child === undefined) {
        this.at = this.text.length;
        return;
      }
      if (node.kind === 'array') {
        node.items.push(child);
        continue;
      }
      if (child.kind !== 'string' && child.kind !== 'word') continue;
      const member: Member = { name: String(decoded(this.text, child) ?? raw(this.text, child)), key: child, value: undefined };
      node.members.push(member);
      const colon = skip(this.text, this.at);
      if (this.text[colon] !== ':') continue;
      this.at = skip(this.text, colon + 1);
      if (!/[,}\]]/.test(this.text[this.at] ?? ',')) member.value = this.value(depth + 1);
    }
  }
}

/** Parse the first value of a text. */
export function parse(text: string): Node | undefined {
  return new Parser(text).value(0);
}

/** Return the text of a node as it is written. */
export function raw(text: string, node: Node): string {
  return text.slice(node.start, node.end);
}

/** Return the value of a text, number or word; undefined for lists, objects and what JSON does not have. */
export function decoded(text: string, node: Node | undefined): string | number | boolean | null | undefined {
  if (node === undefined || node.kind === 'object' || node.kind === 'array') return undefined;
  try {
    return JSON.parse(raw(text, node)) as string | number | boolean | null;
  } catch {
    return undefined;
  }
}

/** Return the value of a node with everything in it, without comments; of repeated keys, the last counts. */
export function valueOf(text: string, node: Node): unknown {
  if (node.kind === 'array') return node.items.map((each) => valueOf(text, each));
  if (node.kind !== 'object') return decoded(text, node);
  return Object.fromEntries(node.members.map(({ name, value }) => [name, value && valueOf(text, value)]));
}

/** Return the member of an object that counts: the last of its name. */
export function memberOf(node: Node | undefined, name: string | number): Member | undefined {
  return node?.members.findLast((each) => each.name === String(name));
}

/** Return the node at a path. */
export function nodeAt(root: Node | undefined, path: Path): Node | undefined {
  let node = root;
  for (const step of path) node = node?.kind === 'array' ? node.items[Number(step)] : memberOf(node, step)?.value;
  return node;
}

/** Return the string at a path; empty if there is none. */
export function wordAt(text: string, root: Node | undefined, path: Path): string {
  const value = decoded(text, nodeAt(root, path));
  return typeof value === 'string' ? value : '';
}

/** Return the path of the innermost value that contains a position. */
export function pathAt(root: Node | undefined, position: number): Path {
  const path: (string | number)[] = [];
  let node = root;
  while (node !== undefined) {
    let next: Node | undefined;
    for (const [index, item] of node.items.entries()) {
      if (item.start <= position && position <= item.end) {
        path.push(index);
        next = item;
        break;
      }
    }
    for (const { key, name, value } of node.members) {
      if (key.start <= position && position <= (value ?? key).end) {
        path.push(name);
        next = value;
        break;
      }
    }
    node = next;
  }
  return path;
}

// The entries of a document: the list, names of resources, and what refers to them. Pure.
import type { Change } from './offsets';
import { setting } from './edits';
import { fullApi, modelOf, type Field, type Schema } from './fields';
import { decoded, nodeAt, wordAt, type Node, type Path } from './tree';

export interface Entry {
  readonly path: Path;
  readonly name: string;
  readonly detail: string; // API and model, or type
  readonly start: number;
}

export interface Section {
  readonly name: string;
  readonly entries: readonly Entry[];
}

const ORDER = ['components', 'services', 'modules', 'remotes', 'packages', 'fragments', 'fragment_mods', 'jobs', 'triggers'];
const NAMES = ['name', 'id', 'fragment_id', 'package', 'pattern'];
const SETTINGS = 'settings';

/** Return the sections with their entries; what is not a list is an entry of the section `settings`. */
export function sections(text: string, root: Node | undefined): Section[] {
  const lists: Section[] = [];
  const settings: Entry[] = [];
  const seen = new Set<string>();
  for (const { name, value, key } of [...(root?.kind === 'object' ? root.members : [])].reverse()) {
    if (value === undefined || seen.has(name)) continue; // the last of a repeated key counts
    seen.add(name);
    if (value.kind === 'array' && value.items.some((each) => each.kind === 'object') || ORDER.includes(name)) {
      lists.push({ name, entries: value.items.map((item, index) => entryOf(text, item, [name, index])) });
    } else settings.push({ path: [name], name, detail: '', start: key.start });
  }
  const place = (each: Section): number => (ORDER.indexOf(each.name) + ORDER.length) % ORDER.length;
  lists.sort((a, b) => place(a) - place(b));
  const all = lists.filter((each) => each.entries.length > 0);
  return settings.length === 0 ? all : [...all, { name: SETTINGS, entries: settings.reverse() }];
}

function entryOf(text: string, item: Node, path: Path): Entry {
  const word = (key: string): string => wordAt(text, item, [key]);
  const api = word('api').split(':').at(-1) ?? '';
  const plain = decoded(text, item);
  const name = NAMES.map(word).find(Boolean) ?? (typeof plain === 'string' ? plain : path[0] === 'services' ? 'builtin' : '(no name)');
  const detail = [api, word('model')].filter(Boolean).join(', ') || word('type') || word('version');
  return { path, name, detail, start: item.start };
}

/** Return the entry that a path belongs to: an item of a list, or a setting. */
export function entryPath(root: Node | undefined, path: Path): Path {
  const [section, index] = path;
  if (section === undefined) return [];
  const list = nodeAt(root, [section]);
  if (list?.kind !== 'array' || !list.items.some((each) => each.kind === 'object')) return [section];
  return typeof index === 'number' ? [section, index] : [];
}

/** Return a path as the server writes it. */
export const dotted = (path: Path): string => path.join('.');

/** Return the path of a text such as `components.0.attributes.max_rpm`, as far as the document has it. */
export function pathOf(root: Node | undefined, text: string): Path {
  const path: (string | number)[] = [];
  let node = root;
  let rest = text;
  while (rest !== '' && node !== undefined) {
    if (node.kind === 'array') {
      const step = /^\d+(?=\.|$)/.exec(rest)?.[0];
      if (step === undefined) break;
      path.push(Number(step));
      rest = rest.slice(step.length + 1);
      node = node.items[Number(step)];
      continue;
    }
    const inside = rest;
    const member = node.members.findLast((each) => inside === each.name || inside.startsWith(`${each.name}.`));
    if (member === undefined) break;
    path.push(member.name);
    rest = rest.slice(member.name.length + 1);
    node = member.value;
  }
  return rest === '' ? path : [...path, ...rest.split('.')];
}

/** Return the names of the resources of an API; of all with `*`. */
export function namesOf(text: string, root: Node | undefined, api: string): string[] {
  const names: string[] = [];
  for (const section of ['components', 'services']) {
    for (const [index] of (nodeAt(root, [section])?.items ?? []).entries()) {
      const name = wordAt(text, root, [section, index, 'name']);
      const own = fullApi(wordAt(text, root, [section, index, 'api']), section);
      // sensors of other kinds have readings too
      if (name && (api === '*' || api === 'frame' || own === api || (api === 'rdk:component:sensor' && own.endsWith('_sensor')))) names.push(name);
    }
  }
  return names;
}

/** Return a name that no resource has: `motor`, `motor-2`, ... */
export function freeName(text: string, root: Node | undefined, wish: string): string {
  const names = new Set(['components', 'services', 'modules', 'remotes', 'jobs', 'triggers'].flatMap((section) => (nodeAt(root, [section])?.items ?? []).map((item) => wordAt(text, item, ['name']))));
  for (let number = 1; ; number++) {
    const name = number === 1 ? wish : `${wish}-${number}`;
    if (!names.has(name)) return name;
  }
}

export interface Reference {
  readonly path: Path;
  readonly place: string; // for people: left › board
}

/** Return the places that name a resource: fields that are references, and texts equal to it in attributes of modules' models. */
export function references(schema: Schema, text: string, root: Node | undefined, name: string): Reference[] {
  const places: Reference[] = [];
  const visit = (node: Node | undefined, field: Field | undefined, path: Path, any: boolean): void => {
    if (node === undefined) return;
    for (const [index, item] of node.items.entries()) visit(item, field?.of, [...path, index], any);
    for (const { name: key, value } of node.members) visit(value, field?.of ?? field?.fields?.[key], [...path, key], any);
    if (node.kind !== 'string' || !(any || field?.names)) return;
    const value = decoded(text, node);
    if (typeof value === 'string' && (value === name || value.endsWith(`/${name}`))) places.push({ path, place: placeOf(text, root, path) });
  };
  for (const section of ['components', 'services']) {
    for (const [index, item] of (nodeAt(root, [section])?.items ?? []).entries()) {
      const entry: Path = [section, index];
      const model = modelOf(schema, text, root, entry);
      visit(nodeAt(item, ['attributes']), model && { kind: 'group', fields: model.fields }, [...entry, 'attributes'], model === undefined);
      visit(nodeAt(item, ['depends_on']), { kind: 'list', of: { kind: 'text', names: '*' } }, [...entry, 'depends_on'], false);
      visit(nodeAt(item, ['frame', 'parent']), { kind: 'text', names: 'frame' }, [...entry, 'frame', 'parent'], false);
    }
  }
  for (const section of ['jobs', 'maintenance']) visit(nodeAt(root, [section]), schema.sections[section], [section], false);
  return places;
}

/** Return a path for people: the name of the entry and its keys. */
export function placeOf(text: string, root: Node | undefined, path: Path): string {
  const entry = entryPath(root, path);
  const name = entry.length === 2 ? wordAt(text, root, [...entry, 'name']) : '';
  return [...(name ? [name] : entry), ...path.slice(entry.length).filter((each) => each !== 'attributes')].join(' › ');
}

/** Return the changes that rename a resource and the places that name it. */
export function renaming(text: string, root: Node | undefined, entry: Path, name: string, places: readonly Reference[]): Change[] {
  const own = setting(text, [...entry, 'name'], { value: name }, root) ?? [];
  return [...own, ...places.flatMap(({ path }) => renamed(text, root, path, name))];
}

function renamed(text: string, root: Node | undefined, path: Path, name: string): Change[] {
  const change = setting(text, path, { value: name }, root)?.[0];
  if (change === undefined) return [];
  const old = JSON.parse(text.slice(change.from, change.to)) as string;
  const api = old.slice(0, old.lastIndexOf('/') + 1); // rdk:component:board/
  return [{ ...change, insert: JSON.stringify(api + name) }];
}

/** A pin of a board that an entry uses, by the number or name that is written. */
export interface Taken {
  readonly pin: string;
  readonly by: string; // left › pins › a
  readonly path: string;
}

/** Return the pins of a board that are used, and its interrupts by name. */
export function takenPins(schema: Schema, text: string, root: Node | undefined, board: string): Taken[] {
  const taken: Taken[] = [];
  const visit = (node: Node | undefined, field: Field | undefined, path: Path): void => {
    if (node === undefined) return;
    for (const [index, item] of node.items.entries()) visit(item, field?.of, [...path, index]);
    for (const { name, value } of node.members) visit(value, field?.of ?? field?.fields?.[name], [...path, name]);
    const pin = decoded(text, node);
    if (field?.pins && typeof pin === 'string' && pin !== '') taken.push({ pin, by: placeOf(text, root, path), path: dotted(path) });
  };
  for (const [index, item] of (nodeAt(root, ['components'])?.items ?? []).entries()) {
    const entry: Path = ['components', index];
    const model = modelOf(schema, text, root, entry);
    if (model === undefined) continue;
    const own = model.api === 'rdk:component:board' && wordAt(text, item, ['name']) === board;
    if (own || wordAt(text, item, ['attributes', 'board']) === board) visit(nodeAt(item, ['attributes']), { kind: 'group', fields: model.fields }, [...entry, 'attributes']);
  }
  return taken;
}

/** Return the interrupts of a board: the pin of each by its name. */
export function interruptsOf(text: string, root: Node | undefined, board: string): Map<string, string> {
  const index = (nodeAt(root, ['components'])?.items ?? []).findIndex((item) => wordAt(text, item, ['name']) === board);
  const list = nodeAt(root, ['components', index, 'attributes', 'digital_interrupts'])?.items ?? [];
  return new Map(list.map((item) => [wordAt(text, item, ['name']), wordAt(text, item, ['pin'])]));
}


// The text of the editor, as the list and the form see it, and their changes of it. The text is the only state: the form
// changes it by the spans of single values, and a change of the text is a change of the form.
import { removing, setting, type Value } from './edits';
import { dotted, entryPath, freeName, namesOf, placeOf, references, renaming, type Reference } from './entries';
import { begun, fullApi, type Model, type Schema } from './fields';
import type { Device } from './found';
import type { Change } from './offsets';
import { nodeAt, parse, pathAt, raw, valueOf, wordAt, type Node, type Path } from './tree';

export interface Finding {
  readonly path: string;
  readonly text: string;
  readonly sentence: string;
  readonly severity: 'error' | 'warning';
  readonly start: number;
  readonly end: number;
}

/** What the draft needs of the editor. */
export interface Paper {
  text(): string;
  change(changes: readonly Change[]): void;
  /** Scroll to a span and select it, without taking the focus. */
  show(from: number, to: number): void;
  undo(): void;
  redo(): void;
}

/** What the text does not contain: resources that fragments add, and names of fragments by id. */
export interface Context {
  readonly resources: readonly string[];
  readonly fragments: Readonly<Record<string, string>>;
}

export type View = 'list' | 'form' | 'text';

export class Draft {
  text = $state.raw('');
  selected = $state.raw<Path>([]); // an entry, or nothing
  adding = $state(false); // the picker is shown instead of the form
  api = $state(''); // of the models that the picker shows; all if empty
  private wanting: Path = []; // the field that gets the name of what is picked
  view = $state<View>('form'); // what narrow screens show
  findings = $state.raw<readonly Finding[]>([]);
  schema = $state.raw<Schema>({ sections: {}, models: [], apis: {} });
  troubles = $state.raw<ReadonlyMap<string, string>>(new Map()); // states of the resources that do not work, by name
  online = $state(false); // whether the machine can be asked what is connected to it
  running = $state(false); // whether the machine runs the saved configuration, so that all other resources work
  readonly root = $derived<Node | undefined>(parse(this.text));

  /** `part` is the machine, empty for a fragment; `token` the path that gives a token for calls. */
  constructor(private readonly paper: Paper, readonly part = '', readonly token = '', private readonly context: Context = { resources: [], fragments: {} }) {
    this.text = paper.text();
  }

  node(path: Path): Node | undefined {
    return nodeAt(this.root, path);
  }

  word(path: Path): string {
    return wordAt(this.text, this.root, path);
  }

  names(api: string): string[] {
    return namesOf(this.text, this.root, api);
  }

  /** Return what a reference can name, with a label for each. */
  choices(names: string): (readonly [string, string])[] {
    if (names === 'fragment') return Object.entries(this.context.fragments).map(([id, name]) => [id, name]);
    return [...this.names(names).map((each) => [each, each] as const), ...this.context.resources.map((each) => [each, `${each}, from a fragment`] as const)];
  }

  // ---- changes

  private change(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    this.paper.change(changes);
    this.text = this.paper.text();
  }

  /** Bring the draft up to date, before a change that would otherwise be one of an older text. */
  renew(): void {
    const text = this.paper.text();
    if (text !== this.text) this.text = text;
  }

  set(path: Path, value: Value): void {
    this.renew();
    this.change(setting(this.text, path, value, this.root) ?? []);
  }

  remove(path: Path): void {
    this.renew();
    this.change(removing(this.text, path, this.root));
  }

  rekey(key: Node, name: string): void {
    this.change([{ from: key.start, to: key.end, insert: JSON.stringify(name) }]);
  }

  undo(): void {
    this.paper.undo();
    this.renew();
  }

  redo(): void {
    this.paper.redo();
    this.renew();
  }

  // ---- entries

  select(path: Path, view: View = 'form'): void {
    this.selected = path;
    this.adding = false;
    this.view = view;
    this.show(path);
  }

  /** Show where a value is in the text. */
  show(path: Path): void {
    for (let length = path.length; length > 0; length--) {
      const node = this.node(path.slice(0, length));
      if (node === undefined) continue;
      this.paper.show(node.start, node.kind === 'object' || node.kind === 'array' ? node.start : node.end);
      return;
    }
  }

  /** Follow the cursor of the text. */
  follow(position: number): void {
    const entry = entryPath(this.root, pathAt(this.root, position));
    if (entry.length > 0 && dotted(entry) !== dotted(this.selected)) {
      this.selected = entry;
      this.adding = false;
    }
  }

  private append(section: string, value: Value): void {
    this.renew();
    const index = this.node([section])?.items.length ?? 0;
    this.set([section, index], value);
    this.select([section, index]);
  }

  /** Show the models of an API, to add a resource that a field then names. */
  pick(api: string, path: Path = []): void {
    this.adding = true;
    this.api = api;
    this.wanting = path;
    this.view = 'form';
  }

  add(model: Model, wish?: string): void {
    const kind = model.api.split(':').at(-1) ?? 'resource';
    const name = freeName(this.text, this.root, wish ?? kind);
    const attributes = begun(model.fields, (api) => this.names(api));
    if (this.wanting.length > 0) this.set(this.wanting, { value: name });
    this.wanting = [];
    this.append(model.section, { value: { name, api: model.api, model: model.word, attributes } });
  }

  /** Whether the document has this device, perhaps by another name. */
  has(device: Device): boolean {
    const section = device.api.includes(':service:') ? 'services' : 'components';
    const attributes = JSON.stringify(device.attributes);
    return (this.node([section])?.items ?? []).some((item) => {
      const own = nodeAt(item, ['attributes']);
      return fullApi(wordAt(this.text, item, ['api']), section) === device.api && device.model.endsWith(wordAt(this.text, item, ['model']))
        && JSON.stringify(own === undefined ? {} : valueOf(this.text, own)) === attributes;
    });
  }

  addDevice({ name, api, model, attributes }: Device): void {
    const value = { name: freeName(this.text, this.root, name), api, model: model.replace(/^rdk:builtin:/, ''), attributes };
    this.append(api.includes(':service:') ? 'services' : 'components', { value });
  }

  addOther(section: string): void {
    const fields = this.schema.sections[section]?.of?.fields ?? {};
    const value = begun(fields, (api) => this.names(api));
    if ('name' in value) value['name'] = freeName(this.text, this.root, section.replace(/s$/, ''));
    this.append(section, { value });
  }

  addSetting(key: string): void {
    if (this.node([key]) === undefined) this.set([key], { value: this.schema.sections[key]?.kind === 'switch' ? true : {} });
    this.select([key]);
  }

  duplicate(entry: Path): void {
    const node = this.node(entry);
    if (node === undefined) return;
    let text = raw(this.text, node);
    const name = wordAt(text, parse(text), ['name']);
    if (name) {
      const [change] = setting(text, ['name'], { value: freeName(this.text, this.root, name) }) ?? [];
      if (change) text = text.slice(0, change.from) + change.insert + text.slice(change.to);
    }
    this.append(String(entry[0]), { json: text });
  }

  references(name: string): Reference[] {
    return name === '' ? [] : references(this.schema, this.text, this.root, name);
  }

  rename(entry: Path, name: string, places: readonly Reference[]): void {
    this.renew();
    this.change(renaming(this.text, this.root, entry, name, places));
  }

  // ---- problems

  problemsAt(path: Path): Finding[] {
    const own = dotted(path);
    return this.findings.filter((each) => each.path === own);
  }

  problemsIn(path: Path): number {
    const own = dotted(path);
    return this.findings.filter((each) => each.path === own || each.path.startsWith(`${own}.`)).length;
  }

  place(path: Path): string {
    return placeOf(this.text, this.root, path);
  }
}

// The fields of the form, as the server serves them (cloud/editing/forms.py), and what of them concerns a text. Pure.
import { decoded, memberOf, raw, wordAt, type Node, type Path } from './tree';

export interface Field {
  readonly kind: 'text' | 'number' | 'integer' | 'duration' | 'switch' | 'choice' | 'list' | 'map' | 'group' | 'json';
  readonly about?: string;
  readonly unit?: string;
  readonly default?: unknown;
  readonly required?: boolean;
  readonly secret?: boolean;
  readonly also_number?: boolean;
  readonly choices?: readonly (string | number | boolean)[];
  readonly range?: string;
  readonly names?: string;
  readonly pins?: '' | 'pin' | 'interrupt';
  readonly of?: Field;
  readonly fields?: Readonly<Record<string, Field>>;
}

export interface Model {
  readonly api: string;
  readonly word: string;
  readonly section: 'components' | 'services';
  readonly about: string;
  readonly simulated: boolean;
  readonly fields: Readonly<Record<string, Field>>;
}

export interface Schema {
  readonly sections: Readonly<Record<string, Field>>;
  readonly models: readonly Model[];
  readonly apis: Readonly<Record<string, string>>;
}

export const JSON_FIELD: Field = { kind: 'json' };
const SECTIONS = new Set(['components', 'services']);

/** Return the API in its full form: `motor` and `component:motor` are short for `rdk:component:motor`. */
export function fullApi(word: string, section: string): string {
  const parts = word.split(':');
  return parts.length === 3 ? word : parts.length === 2 ? `rdk:${word}` : `rdk:${section.slice(0, -1)}:${word}`;
}

/** Return the built-in model of an entry; undefined for a model of a module. */
export function modelOf(schema: Schema, text: string, root: Node | undefined, entry: Path): Model | undefined {
  const section = String(entry[0]);
  if (!SECTIONS.has(section)) return undefined;
  const api = fullApi(wordAt(text, root, [...entry, 'api']), section);
  const word = (wordAt(text, root, [...entry, 'model']) || (section === 'services' ? 'builtin' : '')).replace(/^rdk:builtin:/, '');
  return schema.models.find((each) => each.api === api && each.word === word);
}

/** Return the field of the value at a path. */
export function fieldAt(schema: Schema, text: string, root: Node | undefined, path: Path): Field {
  let field: Field | undefined = schema.sections[String(path[0])];
  for (const [index, step] of path.slice(1).entries()) {
    if (index === 1 && step === 'attributes' && SECTIONS.has(String(path[0]))) {
      const model = modelOf(schema, text, root, path.slice(0, 2));
      field = model === undefined ? undefined : { kind: 'group', fields: model.fields };
    } else field = field?.of ?? (field?.fields && Object.hasOwn(field.fields, step) ? field.fields[step] : undefined);
  }
  return field ?? JSON_FIELD;
}

/** Whether a value stands for another, which the form must not interpret: a variable of a fragment, or a placeholder. */
export function standsFor(text: string, node: Node | undefined): boolean {
  if (node?.kind === 'object') return memberOf(node, '$variable') !== undefined;
  const value = decoded(text, node);
  return typeof value === 'string' && /\$\{[^}]+\}/.test(value);
}

/** Return the text of a plain value as a field shows it: a string without quotes, a number as it is written. */
export function shown(text: string, node: Node | undefined): string {
  if (node === undefined) return '';
  const value = decoded(text, node);
  return typeof value === 'string' ? value : raw(text, node);
}

/** Return the JSON for what a person typed into a field: a number in its spelling where the field is one, otherwise a text. */
export function typed(field: Field, entered: string, old: string): string {
  const plain = entered.trim();
  const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(plain);
  const wasNumber = /^-?\d/.test(old);
  if (number && (field.kind === 'number' || field.kind === 'integer')) return plain;
  if (number && (field.kind === 'duration' || field.also_number === true) && wasNumber) return plain;
  return JSON.stringify(field.kind === 'number' || field.kind === 'integer' ? plain : entered);
}

/** Return the value with which a required field begins; `names` are the resources of an API. */
export function beginning(field: Field, names: (api: string) => readonly string[]): unknown {
  if (field.names) {
    const all = names(field.names);
    return all.length === 1 ? all[0] : '';
  }
  if (field.default !== undefined && field.default !== null) return field.default;
  switch (field.kind) {
    case 'number': case 'integer': return Number(/\d+/.exec(field.range ?? '')?.[0] ?? 0) + (field.range?.startsWith('more') ? 1 : 0);
    case 'switch': return false;
    case 'list': return [];
    case 'group': return begun(field.fields ?? {}, names);
    case 'map': case 'json': return {};
    default: return '';
  }
}

/** Return the required values of a group. */
export function begun(fields: Readonly<Record<string, Field>>, names: (api: string) => readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, each]) => each.required).map(([key, each]) => [key, beginning(each, names)]));
}

/** Return what a key is called for people: `max_rpm` stays, because it is what the text and messages say. */
export function placeholder(field: Field): string {
  if (field.default === undefined || field.default === null) return field.range ?? '';
  return typeof field.default === 'string' ? field.default : JSON.stringify(field.default);
}


// Names of resources, and the kind of card that each gets. Pure.

/** A resource of a machine. `api` is `component:motor`; `name` is the short name, with remotes as `remote:name`. */
export interface Resource {
  readonly name: string;
  readonly api: string;
}

/** What the page shows of a resource in the frame of its card. */
export interface Health {
  readonly state: 'ready' | 'configuring' | 'unhealthy' | 'removing' | 'unconfigured' | 'unknown';
  readonly reason: string;
}

/** Cards in the order in which they are shown: what a person drives first, what they only read last. */
const ORDER = [
  'component:base', 'component:camera', 'component:motor', 'component:servo', 'component:arm', 'component:gantry',
  'component:gripper', 'component:board', 'component:switch', 'component:button', 'service:vision',
  'component:audio_in', 'component:audio_out', 'component:movement_sensor', 'component:pose_tracker', 'component:power_sensor', 'component:encoder', 'component:sensor',
  'component:input_controller', 'component:generic', 'service:generic', 'service:discovery', 'service:data_manager',
] as const;

export type Kind = (typeof ORDER)[number];

const PLACES = new Map<string, number>(ORDER.map((api, place) => [api, place]));

export const isKind = (api: string): api is Kind => PLACES.has(api);

/** Return the resources that have a card, in the order of the page, and the others. */
export function sorted(resources: readonly Resource[]): { cards: Resource[]; others: Resource[] } {
  const place = (resource: Resource): number => PLACES.get(resource.api) ?? ORDER.length;
  const all = [...resources].sort((one, two) => place(one) - place(two) || one.name.localeCompare(two.name));
  return { cards: all.filter((each) => isKind(each.api)), others: all.filter((each) => !isKind(each.api)) };
}

/** Return the word for an API on a page: `component:movement_sensor` is "movement sensor". */
export const word = (api: string): string => (api.split(':')[1] ?? api).replaceAll('_', ' ');

/** Arrangement of a page: names of hidden cards, and of moved ones in their order. */
export interface Layout {
  readonly hidden: readonly string[];
  readonly order: readonly string[];
}

export const DEFAULT_LAYOUT: Layout = { hidden: [], order: [] };

/** Return the cards in the order of `layout`; those that it does not name keep their place behind. */
export function arranged(cards: readonly Resource[], layout: Layout): Resource[] {
  const places = new Map(layout.order.map((name, place) => [name, place]));
  const rank = (resource: Resource): number => places.get(key(resource)) ?? layout.order.length;
  return cards.map((card, place) => ({ card, place })).sort((one, two) => rank(one.card) - rank(two.card) || one.place - two.place)
    .map(({ card }) => card);
}

export const key = (resource: Resource): string => `${resource.api}/${resource.name}`;

/** Parse a stored layout; anything odd is the default. */
export function parseLayout(text: string | null): Layout {
  try {
    const value = JSON.parse(text ?? '') as { hidden?: unknown; order?: unknown };
    const names = (list: unknown): string[] => (Array.isArray(list) ? list.filter((name) => typeof name === 'string') : []);
    return { hidden: names(value.hidden), order: names(value.order) };
  } catch {
    return DEFAULT_LAYOUT;
  }
}

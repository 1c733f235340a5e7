// Islands: interactive parts of pages that the server renders. A page has
//
//   <div data-island="control" data-props='{"host": "rover"}'>what is shown without scripts</div>
//
// and the built script of that name. `mountIslands` is the only way in which data of the page reaches an island.

import { mount, type Component } from 'svelte';

/** Read one property of an island; throws a TypeError that names the property if its type is wrong. */
export class Props {
  private readonly values: Record<string, unknown>;

  constructor(text: string) {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw new TypeError('the properties are not an object');
    this.values = parsed as Record<string, unknown>;
  }

  text(name: string): string {
    const value = this.values[name];
    if (typeof value !== 'string') throw new TypeError(`${name} is not a text`);
    return value;
  }

  number(name: string): number {
    const value = this.values[name];
    if (typeof value !== 'number') throw new TypeError(`${name} is not a number`);
    return value;
  }

  flag(name: string): boolean {
    const value = this.values[name];
    if (typeof value !== 'boolean') throw new TypeError(`${name} is not true or false`);
    return value;
  }
}

/** Replace every island `name` of the page by a component with the properties that `read` returns. */
export function mountIslands<P extends Record<string, unknown>>(name: string, component: Component<P>, read: (props: Props) => P): void {
  for (const target of document.querySelectorAll<HTMLElement>(`[data-island="${name}"]`)) {
    const props = read(new Props(target.dataset['props'] ?? '{}'));
    target.replaceChildren();
    mount(component, { target, props });
  }
}

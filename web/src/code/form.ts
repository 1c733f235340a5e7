// The parts of the form around the text, which the server renders.

/** The script of every page that renews parts of it. */
declare global {
  const morph: { node(from: Element, to: Element): void; parse(html: string, parent: Node): Element };
}

export interface EditorForm {
  form: HTMLFormElement;
  area: HTMLTextAreaElement;
  place: HTMLElement;
  review: HTMLButtonElement;
  add: HTMLButtonElement;
  resource: HTMLInputElement;
  error: HTMLElement;
  check: string;
  complete: string;
}

function within<T extends Element>(form: HTMLFormElement, selector: string, type: new () => T): T {
  const element = form.querySelector(selector);
  if (!(element instanceof type)) throw new TypeError(`the form of the editor has no ${selector}`);
  return element;
}

/** Return the form of the page; null if the configuration can only be read. */
export function findForm(): EditorForm | null {
  const form = document.querySelector<HTMLFormElement>('form[data-editor]');
  if (form === null) return null;
  return {
    form,
    area: within(form, 'textarea', HTMLTextAreaElement),
    place: within(form, '.editor', HTMLElement),
    review: within(form, '[value=review]', HTMLButtonElement),
    add: within(form, '[value=add]', HTMLButtonElement),
    resource: within(form, '[name=resource]', HTMLInputElement),
    error: within(form, '[data-add-error]', HTMLElement),
    check: form.dataset['check'] ?? '',
    complete: form.dataset['complete'] ?? '',
  };
}

/** Replace elements by their new state, by id. */
export function renew(patch: Record<string, string>): void {
  for (const [id, html] of Object.entries(patch)) {
    const element = document.getElementById(id);
    if (element?.parentNode) morph.node(element, morph.parse(html, element.parentNode));
  }
}

/** Return the link to the place that a path after # names: the problem itself, or the entry that contains it.
 * `resource=` and a name is the entry of that name. */
export function linkOf(form: HTMLFormElement, path: string): HTMLElement | undefined {
  const links = [...form.querySelectorAll<HTMLElement>('a[data-at]')];
  if (path.startsWith('resource=')) return links.find((link) => link.closest('#outline') && link.textContent.trim() === path.slice(9));
  const contains = (link: HTMLElement): boolean => {
    const own = link.dataset['path'];
    return own !== undefined && own !== '' && (path === own || path.startsWith(`${own}.`));
  };
  return links.filter(contains).sort((a, b) => (b.dataset['path'] ?? '').length - (a.dataset['path'] ?? '').length)[0];
}

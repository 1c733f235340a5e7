// The parts of the form around the text, which the server renders.

import type { Context } from './draft.svelte';

/** The script of every page that renews parts of it. */
declare global {
  const morph: { node(from: Element, to: Element): void; parse(html: string, parent: Node): Element };
}

export interface EditorForm {
  form: HTMLFormElement;
  area: HTMLTextAreaElement;
  place: HTMLElement;
  review: HTMLButtonElement;
  bench: HTMLElement; // where list and form are drawn
  check: string;
  complete: string;
  schema: string;
  part: string; // the machine; empty for a fragment
  context: Context;
  token: string; // path that gives a token for calls
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
    bench: within(form, '[data-bench]', HTMLElement),
    check: form.dataset['check'] ?? '',
    complete: form.dataset['complete'] ?? '',
    schema: form.dataset['schema'] ?? '',
    part: form.dataset['part'] ?? '',
    token: form.dataset['token'] ?? '',
    context: JSON.parse(form.dataset['context'] ?? '{"resources": [], "fragments": {}}') as Context,
  };
}

/** Replace elements by their new state, by id. */
export function renew(patch: Record<string, string>): void {
  for (const [id, html] of Object.entries(patch)) {
    const element = document.getElementById(id);
    if (element?.parentNode) morph.node(element, morph.parse(html, element.parentNode));
  }
}

/** Return the states of the resources that do not work, by name, as the page says them. */
export function troublesOf(running: HTMLElement): Map<string, string> {
  return new Map([...running.querySelectorAll<HTMLElement>('li[data-resource]')].map((each) => [each.dataset['resource'] ?? '', each.dataset['state'] ?? '']));
}

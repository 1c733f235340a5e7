// List and form, loaded after the editor: the text can be used before.
import { mount } from 'svelte';
import type { Draft, View } from './draft.svelte';
import Workbench from './Workbench.svelte';

export function mountWorkbench(target: HTMLElement, draft: Draft, show: (view: View) => void): void {
  target.replaceChildren();
  mount(Workbench, { target, props: { draft, show } });
}

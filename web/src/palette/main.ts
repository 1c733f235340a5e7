// The palette: Ctrl+K, or the link Search, opens a dialog that goes to machines, pages, actions and help by words.
// Without scripts, the link opens the page /search.
import './palette.css';
import { moved, opens, targetsOf, type Target } from './targets';

const PAUSE = 120; // milliseconds after the last key

class Palette {
  private readonly dialog = document.createElement('dialog');
  private readonly input = document.createElement('input');
  private readonly list = document.createElement('ul');
  private readonly note = document.createElement('p');
  private targets: readonly Target[] = [];
  private chosen = -1;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private request: AbortController | undefined;

  constructor() {
    const { dialog, input, list, note } = this;
    dialog.className = 'finder';
    dialog.setAttribute('aria-label', 'Go to');
    Object.assign(input, { type: 'search', autocomplete: 'off', maxLength: 100, placeholder: 'Machine, page, action or question' });
    for (const [name, value] of [['role', 'combobox'], ['aria-label', 'Go to'], ['aria-expanded', 'true'], ['aria-controls', 'finder-list'], ['aria-autocomplete', 'list']] as const) input.setAttribute(name, value);
    list.id = 'finder-list';
    list.setAttribute('role', 'listbox');
    list.setAttribute('aria-label', 'Results');
    note.setAttribute('role', 'status');
    note.className = 'muted';
    dialog.append(input, list, note);
    document.body.append(dialog);
    input.addEventListener('input', () => { this.ask(PAUSE); });
    input.addEventListener('keydown', (event) => { this.press(event); });
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  }

  open(): void {
    if (this.dialog.open) return;
    this.dialog.showModal();
    this.input.select();
    this.ask(0);
  }

  private press(event: KeyboardEvent): void {
    if (event.key === 'Enter') {
      event.preventDefault();
      const target = this.targets[Math.max(this.chosen, 0)];
      if (target !== undefined) this.go(target);
      return;
    }
    if (event.key === 'Escape') { // a search field would only clear its text
      event.preventDefault();
      this.dialog.close();
      return;
    }
    const next = moved(event.key, this.chosen, this.targets.length);
    if (next === this.chosen || ((event.key === 'Home' || event.key === 'End') && this.input.value !== '')) return;
    event.preventDefault();
    this.choose(next);
  }

  private go(target: Target): void {
    this.dialog.close(); // it may lead to a place of this page
    location.assign(target.href);
  }

  private ask(pause: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { void this.fetch(this.input.value.trim()); }, pause);
  }

  private async fetch(text: string): Promise<void> {
    this.request?.abort();
    const request = (this.request = new AbortController());
    try {
      const reply = await fetch(`/search?${new URLSearchParams({ text }).toString()}`, { headers: { accept: 'application/json' }, signal: request.signal });
      if (!reply.ok) throw new TypeError(String(reply.status));
      this.show(targetsOf(await reply.json()));
      this.note.textContent = this.targets.length === 0 ? 'Nothing has these words in its name.' : '';
    } catch (error) {
      if (error instanceof DOMException && error.name === 'AbortError') return;
      this.show([]);
      this.note.textContent = 'The cloud does not answer. Try again in a moment.';
    }
  }

  private show(targets: readonly Target[]): void {
    this.targets = targets;
    this.list.replaceChildren(...targets.map((target, number) => {
      const item = document.createElement('li');
      const title = document.createElement('span');
      const detail = document.createElement('span');
      item.id = `finder-${String(number)}`;
      item.setAttribute('role', 'option');
      title.textContent = target.title;
      detail.textContent = [target.kind, target.detail].filter((part) => part !== '').join(', ');
      detail.className = 'muted';
      item.append(title, detail);
      item.addEventListener('click', () => { this.go(target); });
      return item;
    }));
    this.chosen = -1;
    this.choose(targets.length > 0 ? 0 : -1);
  }

  private choose(index: number): void {
    this.list.children[this.chosen]?.setAttribute('aria-selected', 'false');
    this.chosen = index;
    const item = this.list.children[index];
    item?.setAttribute('aria-selected', 'true');
    item?.scrollIntoView({ block: 'nearest' });
    this.input.setAttribute('aria-activedescendant', item?.id ?? '');
  }
}

let palette: Palette | undefined;
const open = (event: Event): void => {
  event.preventDefault();
  (palette ??= new Palette()).open();
};
for (const link of document.querySelectorAll('[data-find]')) link.addEventListener('click', open);
document.addEventListener('keydown', (event) => { if (opens(event)) open(event); });

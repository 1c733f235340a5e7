// The arrangement of the cards of a machine: kept by its server for everyone, or, where it may not be, by this browser.

import { DEFAULT_LAYOUT, parseLayout, type Layout } from './resources';

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
type Send = (path: string, layout: string) => Promise<void>;

/** Send an arrangement to the server; throws an Error that says why it was not saved. */
export async function post(path: string, layout: string): Promise<void> {
  const response = await fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: layout });
  if (response.ok) return;
  const answer = await response.json().catch(() => null) as { error?: unknown } | null;
  throw new Error(typeof answer?.error === 'string' ? answer.error : `the server answered ${response.status}`);
}

export class Arrangement {
  layout: Layout;
  private sending = false;
  private newest: string | null = null;

  /** `saved` is what the server keeps, empty if nothing; `path` is where it takes another one, empty if it does not. */
  constructor(saved: string, private readonly path: string, private readonly name: string, private readonly store: Store, private readonly send: Send = post) {
    const own = store.getItem(name);
    const text = store.getItem(this.unsaved) ?? (path ? saved || own : own ?? saved);
    this.layout = text ? parseLayout(text) : DEFAULT_LAYOUT;
  }

  /** Under this name is what the server did not take. */
  private get unsaved(): string { return `${this.name} unsaved`; }

  /** Keep an arrangement; returns where it is kept, in words, or null if a later one is being saved instead. */
  async save(layout: Layout): Promise<string | null> {
    this.layout = layout;
    const text = JSON.stringify(layout);
    if (!this.path) {
      this.store.setItem(this.name, text);
      return 'Arranged in this browser.';
    }
    this.newest = text;
    if (this.sending) return null;
    this.sending = true;
    try {
      for (let sent = ''; sent !== this.newest;) {
        sent = this.newest;
        await this.send(this.path, sent);
      }
      for (const name of [this.name, this.unsaved]) this.store.removeItem(name);
      return 'Arranged for everyone who opens this machine.';
    } catch (error) {
      this.store.setItem(this.unsaved, this.newest);
      return `Arranged in this browser only: ${error instanceof Error ? error.message : String(error)}`;
    } finally {
      this.sending = false;
    }
  }
}

// Values of a card that are read again and again while it is on the page.

import { untrack } from 'svelte';
import { repeat } from '../base/repeat';
import { said } from './values';

/** State of a card: the error of its last reading or command, empty if it worked. */
export class Trouble {
  text = $state('');

  /** Show an error. */
  readonly show = (error: unknown): void => { this.text = said(error); };

  /** Run a command of a person and show its error. */
  readonly attempt = (command: () => Promise<unknown>): void => {
    command().then(() => { this.text = ''; }, this.show);
  };
}

/** Read values while the component exists and the page is visible, `pause()` milliseconds after the last reading. */
export function live(read: () => Promise<void>, pause: () => number, trouble: Trouble): void {
  $effect(() => {
    const gone = new AbortController();
    let failed = false;
    const task = async (): Promise<void> => {
      await read();
      if (failed) trouble.text = '';
      failed = false;
    };
    // What `read` reads before its first await must not restart it.
    untrack(() => {
      void repeat(task, pause, gone.signal, (error) => {
        failed = true;
        trouble.show(error);
      });
    });
    return () => { gone.abort(); };
  });
}

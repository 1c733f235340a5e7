// Values of a card that are read again and again while it is on the page.

import { getContext, setContext, untrack } from 'svelte';
import { Gate, repeat } from '../base/repeat';
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

const SIGHT = Symbol('sight');

/** Make a gate for the values of the components within this one: they are read while it is open. */
export function gateOfSight(): Gate {
  const gate = new Gate();
  setContext(SIGHT, gate);
  return gate;
}

/** Read values while the component exists and is in sight, `pause()` milliseconds after the last reading. */
export function live(read: () => Promise<void>, pause: () => number, trouble: Trouble): void {
  const gate = getContext<Gate | undefined>(SIGHT);
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
      }, gate);
    });
    return () => { gone.abort(); };
  });
}

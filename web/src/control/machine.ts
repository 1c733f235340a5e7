// What cards share: the connection, the session, and calls with them.

import { getContext, setContext } from 'svelte';
import type { CallOptions } from '@connectrpc/connect';
import type { RobotClient } from '@viamrobotics/sdk';
import type { Kind } from './link';
import type { Trouble } from './live.svelte';
import type { Resource } from './resources';
import type { Release, Safety } from './safety';
import type { Streams } from './streams';

/** The connected machine, for cards. A new connection makes new cards. */
export interface Machine {
  /** Id of its part in the cloud that shows the page; empty on the machine's own page. */
  readonly part: string;
  readonly client: RobotClient;
  readonly way: Kind;
  readonly safety: Safety;
  readonly streams: Streams;
  readonly resources: readonly Resource[];
}

const KEY = Symbol('machine');

export const shareMachine = (machine: Machine): void => { setContext(KEY, machine); };
export const useMachine = (): Machine => getContext<Machine>(KEY);

/** Return options of a call that moves something: it belongs to the page's session, so that it ends with the page. */
export async function moving(machine: Machine): Promise<CallOptions> {
  return { headers: { 'viam-sid': await machine.safety.session() } };
}

/**
 * Return a function that runs a command which moves something until it has arrived, and shows its error. It does not end with
 * a hold; if the page is hidden, left or stopped in the meantime, the page stops it at once.
 */
export function mover(machine: Machine, trouble: Trouble, stop: Release): (command: (options: CallOptions) => Promise<unknown>) => void {
  return (command) => {
    trouble.attempt(async () => {
      const options = await moving(machine);
      const arrived = machine.safety.during(stop);
      try {
        await command(options);
      } finally {
        arrived();
      }
    });
  };
}

/**
 * Return a function that stops something and shows `reason`, if any. If the machine does not confirm the stop, the page ends
 * its heartbeats, so that the machine stops by itself: see safety.ts.
 */
export function stopper(machine: Machine, trouble: Trouble, stop: () => Promise<void>): (reason?: string) => void {
  return (reason = '') => {
    trouble.attempt(async () => {
      try {
        await stop();
      } catch (error) {
        machine.safety.end('Stop did not reach the machine.');
        throw error;
      }
      if (reason !== '') throw new Error(reason);
    });
  };
}

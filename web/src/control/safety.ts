// Dead-man safety of the page: nothing moves longer than a person holds it.
//
// The page's session on the machine lives by heartbeats, which are sent only while the page is visible. When they end, for
// whatever reason, the machine itself stops what the session has moved. Everything else only makes that faster:
//
//   what happens                             what stops the actuator                     at the latest after
//   the pointer or key is released           the page sends Stop                         a call
//   page hidden, window left, phone locked   the page sends Stop, heartbeats end         a call, else WINDOW
//   a move without a hold, page hidden       the page sends Stop, heartbeats end         a call, else WINDOW
//   tab or browser killed, network cut       heartbeats end                              WINDOW
//   the cloud between page and machine ends  heartbeats end                              WINDOW
//   Stop does not reach the machine          the page ends its heartbeats                WINDOW
//   another person presses STOP ALL          the machine, which also ends the session,        a call
//                                            so that the person must press again

import { INTERRUPTED } from './values';

/** Milliseconds without a heartbeat after which the machine stops what the page moves. */
export const WINDOW = 1000;
/** Milliseconds between heartbeats: three may be lost or late. */
export const INTERVAL = WINDOW / 4;

/** The calls of a session, as `link.ts` makes them. */
export interface SessionCalls {
  /** Start a session; returns its id. */
  start(windowMilliseconds: number): Promise<string>;
  /** Extend a session; rejects if it has ended. */
  heartbeat(id: string): Promise<void>;
}

/** Ends something that is held, such as a joystick. `reason` is for people; empty if the person let go. */
export type Release = (reason: string) => void;

/** The session of this page, and everything that is held on it. */
export class Safety {
  private id = '';
  private starting: Promise<string> | undefined;
  private ends = 0; // number of ends, so that a start knows whether one came after it
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly holds = new Set<Release>();
  private readonly moves = new Set<Release>();

  constructor(private readonly calls: SessionCalls) {}

  /** Whether this page has a session on the machine. */
  get active(): boolean { return this.id !== ''; }

  /** Return the id of a live session, started if necessary. Send it with every command. Rejects while the page is hidden. */
  session(): Promise<string> {
    if (document.hidden) return Promise.reject(new Error('The page is not visible: nothing is moved.'));
    if (this.id !== '') return Promise.resolve(this.id);
    this.starting ??= this.start();
    return this.starting;
  }

  /** Register something that is held; call the result when it is let go. */
  hold(release: Release): () => void {
    this.holds.add(release);
    return () => { this.holds.delete(release); };
  }

  /** Register a movement that goes on without a hold; call the result when it has arrived. The focus may leave the window. */
  during(release: Release): () => void {
    this.moves.add(release);
    return () => { this.moves.delete(release); };
  }

  /** Let go of everything, and end the heartbeats: the machine stops what this page has moved within WINDOW. */
  end(reason: string): void {
    clearTimeout(this.timer);
    this.id = '';
    this.starting = undefined;
    this.ends += 1;
    for (const release of [...this.holds, ...this.moves]) release(reason);
  }

  /** End when the page is hidden, left, frozen or loses the focus. Returns a function that stops watching. */
  watch(): () => void {
    const hidden = (): void => { if (document.hidden) this.end('Stopped: the page was hidden.'); };
    const left = (): void => { this.end('Stopped: the page was left.'); };
    const blurred = (): void => {
      for (const release of [...this.holds]) release('Stopped: the window lost the focus.');
    };
    document.addEventListener('visibilitychange', hidden);
    document.addEventListener('freeze', left);
    window.addEventListener('pagehide', left);
    window.addEventListener('blur', blurred);
    return () => {
      document.removeEventListener('visibilitychange', hidden);
      document.removeEventListener('freeze', left);
      window.removeEventListener('pagehide', left);
      window.removeEventListener('blur', blurred);
      this.end('Stopped: the page was left.');
    };
  }

  private async start(): Promise<string> {
    const { ends } = this;
    try {
      const id = await this.calls.start(WINDOW);
      // An answer after the end is not used: it would move things, and send heartbeats, while the page is hidden.
      if (ends !== this.ends) throw new Error('Stopped before the machine answered.');
      this.id = id;
      this.beat(id);
      return id;
    } finally {
      if (ends === this.ends) this.starting = undefined;
    }
  }

  private beat(id: string): void {
    this.timer = setTimeout(() => {
      if (this.id !== id) return;
      // The next heartbeat follows the answer to this one: a connection that is stuck gets no queue of them.
      this.calls.heartbeat(id).then(
        () => { if (this.id === id) this.beat(id); },
        () => { if (this.id === id) this.end(INTERRUPTED); },
      );
    }, INTERVAL);
  }
}

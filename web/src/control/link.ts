// The connection of the page to its machine, through the official SDK, as programs of users have it.

import { createGrpcWebTransport } from '@connectrpc/connect-web';
import type { Interceptor } from '@connectrpc/connect';
import { RobotClient } from '@viamrobotics/sdk';
import type { Health, Resource } from './resources';
import type { SessionCalls } from './safety';

/** How the page reaches its machine. Everything is on the page's own origin. */
export interface Way {
  /** Id of the part in a cloud; empty on the machine's own page. */
  readonly part: string;
  /** Path that exchanges the session of the page for a token for calls; empty if calls need none. */
  readonly token: string;
  /** Whether the machine answers WebRTC. */
  readonly webrtc: boolean;
}

/** The way in use: WebRTC, or calls to the origin of the page, which is the machine or a cloud that forwards them. */
export type Kind = 'webrtc' | 'direct' | 'cloud';

const DIAL = 6000; // milliseconds until WebRTC gives up and the other way is taken
const PAGE = 'page-of-this-machine'; // host that a machine's own signalling answers: see runtime/server/port/signalling.py
const AGAIN = 600_000; // milliseconds in which a tab does not wait for WebRTC again, after it has given up
const GIVEN_UP = 'webrtc given up'; // when it has, in the storage of the tab
const EARLY = 60_000; // milliseconds before its end at which a token is replaced

const STOPS = /[/](?:Stop|StopAll)$/u;

/** Fetch so that a stop is sent although the page is being left or frozen, in which browsers drop other requests. */
const fetchStops: typeof globalThis.fetch = (input, init) => {
  const url = input instanceof Request ? input.url : String(input);
  return fetch(input, STOPS.test(url) ? { ...init, keepalive: true } : init);
};

/** A token for calls, fetched when it is first needed and before it expires. */
class Token {
  private value: Promise<string> | undefined;
  private ends = 0;

  constructor(private readonly path: string) {}

  get(): Promise<string> {
    if (this.value === undefined || Date.now() > this.ends - EARLY) {
      this.ends = Infinity; // while it is fetched
      this.value = this.fetch();
      this.value.catch(() => { this.value = undefined; });
    }
    return this.value;
  }

  private async fetch(): Promise<string> {
    const response = await fetch(this.path, { method: 'POST', headers: { accept: 'application/json' } });
    if (response.status === 401 || response.redirected) throw new Error('The login has ended. Reload the page to log in again.');
    if (!response.ok) throw new Error(`The server refused a token: ${await response.text()}`);
    const answer = (await response.json()) as { token: string; seconds: number };
    this.ends = Date.now() + answer.seconds * 1000;
    return answer.token;
  }
}

/** A connected machine. `close` ends it. */
export class Link {
  private closed = false;

  private constructor(readonly client: RobotClient, readonly kind: Kind, lost: () => void) {
    client.on('disconnected', () => { if (!this.closed) lost(); });
  }

  /** Connect: by WebRTC if the machine answers it, else by calls to the page's origin. Rejects if neither works. */
  static async open(way: Way, lost: () => void): Promise<Link> {
    const token = new Token(way.token);
    const authorize: Interceptor = (next) => async (request) => {
      if (way.token !== '') request.header.set('authorization', `Bearer ${await token.get()}`);
      if (way.part !== '') request.header.set('machine-part', way.part);
      return next(request);
    };
    // The SDK's own switch for transports. It applies to signalling, too.
    globalThis.VIAM = {
      GRPC_TRANSPORT_FACTORY: () => createGrpcWebTransport({ baseUrl: location.origin, interceptors: [authorize], fetch: fetchStops }),
    };
    // The SDK lets a worker from a blob keep connections of hidden pages alive. The policy of the pages forbids blobs,
    // and a hidden page must not be kept alive: see safety.ts.
    Object.defineProperty(globalThis, 'Worker', { value: undefined, configurable: true });
    const common = { disableSessions: true, noReconnect: true } as const; // safety.ts has the session
    if (way.webrtc && Date.now() - Number(sessionStorage.getItem(GIVEN_UP) ?? 0) > AGAIN) {
      const begin = performance.now();
      try {
        const conf = { ...common, host: way.part || PAGE, signalingAddress: location.origin, dialTimeout: DIAL, reconnectMaxAttempts: 1 };
        return new Link(await new RobotClient().dial(conf), 'webrtc', lost);
      } catch (error) {
        // Neither end reached the other, as through a tunnel: the machine's own page would show nothing for as long each time.
        if (way.part === '' && performance.now() - begin >= DIAL) sessionStorage.setItem(GIVEN_UP, String(Date.now()));
        console.info('WebRTC is not available, calls take the other way:', error);
      }
    }
    // The SDK dials only addresses with "local" in them without WebRTC; the transport above knows the right one.
    const client = await new RobotClient().dial({ ...common, host: 'http://localhost', dialTimeout: DIAL });
    return new Link(client, way.part === '' ? 'direct' : 'cloud', lost);
  }

  /** Calls of the page's session on the machine. */
  readonly session: SessionCalls = {
    start: async (window) => {
      const headers = { 'machine-heartbeat-window': `${window / 1000}` };
      return (await this.client.robotService.startSession({ resume: '' }, { headers })).id;
    },
    heartbeat: async (id) => { await this.client.robotService.sendSessionHeartbeat({ id }, { timeoutMs: 2000 }); },
  };

  /** Return the resources and their states. */
  async resources(): Promise<{ resources: Resource[]; health: Map<string, Health> }> {
    const { resources } = await this.client.getMachineStatus();
    const health = new Map<string, Health>();
    const found: Resource[] = [];
    for (const status of resources) {
      const name = status.name;
      if (name?.namespace !== 'rdk') continue;
      const resource = { name: name.name, api: `${name.type}:${name.subtype}` };
      found.push(resource);
      health.set(`${resource.api}/${resource.name}`, { state: STATES[status.state] ?? 'unknown', reason: status.error });
    }
    return { resources: found, health };
  }

  /** Return the number of clients with a session, this page included if it has one. */
  async sessions(): Promise<number> {
    return (await this.client.robotService.getSessions({})).sessions.length;
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.client.disconnect();
  }
}

const STATES: Readonly<Record<number, Health['state']>> = {
  1: 'unconfigured', 2: 'configuring', 3: 'ready', 4: 'removing', 5: 'unhealthy',
};

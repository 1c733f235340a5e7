// Live video of the cameras of one connection. Cards that show the same camera share its stream.

/** Part of the SDK's StreamClient that is used here. */
export interface StreamCalls {
  getStream(name: string): Promise<MediaStream>;
  remove(name: string): Promise<void>;
}

interface Shared { stream: Promise<MediaStream>; users: number }

/** The streams that cards use now; each is asked for once, and ended when its last user is gone. */
export class Streams {
  private readonly shared = new Map<string, Shared>();
  private ending: Promise<void> = Promise.resolve(); // a stream is asked for again only after its end

  constructor(private readonly calls: StreamCalls) {}

  /** Return the stream of a camera; rejects if it has no video. Call `release` once for each call. */
  acquire(name: string): Promise<MediaStream> {
    const present = this.shared.get(name);
    if (present !== undefined) {
      present.users += 1;
      return present.stream;
    }
    const stream = this.ending.then(() => this.calls.getStream(name));
    this.shared.set(name, { stream, users: 1 });
    return stream;
  }

  /** Give a stream back. */
  release(name: string): void {
    const present = this.shared.get(name);
    if (present === undefined) return;
    present.users -= 1;
    if (present.users > 0) return;
    this.shared.delete(name);
    // The machine ends streams with their connection, too, so an error does not matter.
    this.ending = present.stream.then(() => this.calls.remove(name)).catch(() => undefined);
  }
}

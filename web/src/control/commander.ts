// Commands of one actuator, in order: at most one is on its way, and only the newest waits.

/** Sends a command with what `prepare` has returned; resolves when the machine has accepted it. */
export type Send<C, P> = (command: C, prepared: P) => Promise<void>;

/**
 * Commands for one actuator. A command given while another is on its way replaces the one that waits, so that a slow
 * connection never builds up a queue of old positions of a joystick. A stop overtakes everything: it is sent at once,
 * and again if a command was on its way, because that command may arrive after it. A command that was still being prepared
 * is not sent any more: who presses a button and lets go before the session has started moves nothing. A command that
 * follows a stop is sent when the machine has answered to the stop, because calls may overtake each other.
 */
export class Commander<C, P> {
  private waiting: C | undefined;
  private running = false;
  private flight: Promise<void> | undefined; // the command on its way; never rejects
  private issued = 0; // number of commands, so that a stop knows whether one came after it
  private stops = 0; // number of stops, so that a command knows whether one came before it was sent
  private readonly stopping = new Set<Promise<void>>(); // stops on their way

  constructor(
    private readonly prepare: () => Promise<P>,
    private readonly send: Send<C, P>,
    private readonly sendStop: () => Promise<void>,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** Send `command` now, or after the one on its way unless a newer command replaces it. */
  command(command: C): void {
    this.waiting = command;
    this.issued += 1;
    if (!this.running) void this.run();
  }

  /** Stop. Resolves when the machine has confirmed it; rejects if the call failed. */
  async stop(): Promise<void> {
    this.waiting = undefined;
    this.stops += 1;
    const { flight, issued } = this;
    await this.stopNow();
    if (flight === undefined) return;
    await flight;
    if (issued === this.issued) await this.stopNow();
  }

  private async stopNow(): Promise<void> {
    const sent = this.sendStop();
    this.stopping.add(sent);
    try {
      await sent;
    } finally {
      this.stopping.delete(sent);
    }
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.waiting !== undefined) {
      const next = this.waiting;
      this.waiting = undefined;
      this.flight = this.deliver(next, this.stops).catch(this.failed);
      await this.flight;
      this.flight = undefined;
    }
    this.running = false;
  }

  private async deliver(command: C, stops: number): Promise<void> {
    const prepared = await this.prepare();
    while (this.stopping.size > 0) await Promise.allSettled(this.stopping);
    if (stops === this.stops) await this.send(command, prepared);
  }
}

// Commands of one actuator, in order: at most one is on its way, and only the newest waits.

/** Sends a command; resolves when the machine has accepted it. */
export type Send<C> = (command: C) => Promise<void>;

/**
 * Commands for one actuator. A command given while another is on its way replaces the one that waits, so that a slow
 * connection never builds up a queue of old positions of a joystick. A stop overtakes everything: it is sent at once,
 * and again if a command was on its way, because that command may arrive after it.
 */
export class Commander<C> {
  private waiting: C | undefined;
  private running = false;
  private flight: Promise<void> | undefined; // the command on its way; never rejects
  private issued = 0; // number of commands, so that a stop knows whether one came after it

  constructor(
    private readonly send: Send<C>,
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
    const { flight, issued } = this;
    await this.sendStop();
    if (flight === undefined) return;
    await flight;
    if (issued === this.issued) await this.sendStop();
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.waiting !== undefined) {
      const next = this.waiting;
      this.waiting = undefined;
      this.flight = this.send(next).catch(this.failed);
      await this.flight;
      this.flight = undefined;
    }
    this.running = false;
  }
}

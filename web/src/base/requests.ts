// Requests while typing: a new one cancels the previous one, and is sent after a pause.

const TRIES_AGAIN = ['AbortError', 'TimeoutError'];

export class Requester<Answer> {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private request: AbortController | undefined;

  constructor(
    private readonly address: string,
    private readonly pause: number, // milliseconds
  ) {}

  stop(): void {
    clearTimeout(this.timer);
    this.request?.abort();
  }

  /** Send `body` after the pause, or at once; pass the answer to `handle`, unless a newer request replaced it. */
  send(body: () => unknown, handle: (answer: Answer) => void, now = false): void {
    this.stop();
    this.timer = setTimeout(() => {
      void this.ask(body()).then((answer) => {
        if (answer !== null) handle(answer);
      });
    }, now ? 0 : this.pause);
  }

  /** Return the answer; null if the request was replaced, refused or lost: the next key asks again. */
  async ask(body: unknown): Promise<Answer | null> {
    this.request?.abort();
    const request = (this.request = new AbortController());
    try {
      const reply = await fetch(this.address, { method: 'POST', body: JSON.stringify(body), signal: request.signal, headers: { accept: 'application/json' } });
      return reply.ok ? ((await reply.json()) as Answer) : null;
    } catch (error) {
      if (error instanceof TypeError || (error instanceof DOMException && TRIES_AGAIN.includes(error.name))) return null;
      throw error;
    }
  }
}

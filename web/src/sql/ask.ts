// A query that runs: the lines of POST /sql/answer.

import { lineOf, type Answer, type Refusal, type Stage } from './answer';

/** Ask for an answer. `progress` gets the stages; aborting ends the query in the server, too. */
export async function ask(organization: string, query: string, signal: AbortSignal, progress: (stage: Stage) => void): Promise<Answer | Refusal> {
  const reply = await fetch('/sql/answer', {
    method: 'POST', body: JSON.stringify({ organization, query }), signal, headers: { accept: 'application/json', 'content-type': 'application/json' },
  });
  if (!reply.ok || reply.body === null) {
    const body: unknown = await reply.json().catch(() => null);
    const said = typeof body === 'object' && body !== null && 'error' in body ? String(body.error) : `The server answered ${reply.status}. Reload the page.`;
    return { error: said, position: null };
  }
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    rest += value ?? '';
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) {
      const line = lineOf(text);
      if (!('stage' in line)) return line;
      progress(line);
    }
    if (done) return { error: 'The connection ended before the answer was complete. Run the query again.', position: null };
  }
}

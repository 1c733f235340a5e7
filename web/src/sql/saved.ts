// Saved queries of the organization, as the server lists them.

export interface SavedQuery {
  readonly id: string;
  readonly name: string;
  readonly text: string;
}

interface Reply {
  readonly id: string;
  readonly saved: readonly SavedQuery[];
}

/** Send a form of saved queries; return the new list, and the id of what was saved. Throws an Error with the refusal. */
export async function send(path: string, fields: Record<string, string>): Promise<Reply> {
  const reply = await fetch(path, { method: 'POST', body: new URLSearchParams(fields), headers: { accept: 'application/json' } });
  const body: unknown = await reply.json().catch(() => null);
  if (typeof body === 'object' && body !== null && 'saved' in body) return body as Reply;
  throw new Error(typeof body === 'object' && body !== null && 'error' in body ? String(body.error) : `The server answered ${reply.status}.`);
}

// Pictures that a person stores in the cloud from the card of a camera: GET and POST /machines/<part>/snapshots.

/** A dataset into which pictures can go. */
export interface Dataset {
  readonly id: string;
  readonly name: string;
}

/** Return the datasets into which pictures of the machine with this part can go. */
export async function datasetsOf(part: string): Promise<Dataset[]> {
  return (await answerOf(await fetch(path(part), { headers: JSON_ONLY }))) as Dataset[];
}

/** Store a JPEG as captured now by a camera, in a dataset or, if `dataset` is empty, in none. */
export async function storeSnapshot(part: string, component: string, dataset: string, picture: Blob): Promise<void> {
  const query = new URLSearchParams({ component, dataset }).toString();
  await answerOf(await fetch(`${path(part)}?${query}`, { method: 'POST', headers: { ...JSON_ONLY, 'content-type': 'image/jpeg' }, body: picture }));
}

const JSON_ONLY = { accept: 'application/json' } as const;

const path = (part: string): string => `/machines/${encodeURIComponent(part)}/snapshots`;

/** Return the answer; throws its error as a sentence. */
async function answerOf(response: Response): Promise<unknown> {
  const body: unknown = await response.json().catch(() => null);
  if (response.ok) return body;
  throw new Error(typeof body === 'object' && body !== null && 'error' in body ? String(body.error) : `The cloud answered ${response.status}.`);
}

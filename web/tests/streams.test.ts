import { expect, it } from 'vitest';
import { Streams } from '../src/control/streams';

class Machine {
  readonly said: string[] = [];
  readonly streams = new Streams(this);

  constructor(private readonly video = true) {}

  getStream(name: string): Promise<MediaStream> {
    this.said.push(`get ${name}`);
    return this.video ? Promise.resolve({ id: name } as MediaStream) : Promise.reject(new Error('no video'));
  }

  remove(name: string): Promise<void> {
    this.said.push(`remove ${name}`);
    return Promise.resolve();
  }
}

const settled = (): Promise<void> => new Promise((resolve) => { setTimeout(resolve); });

it('asks for a stream once, and ends it with its last user', async () => {
  const { streams, said } = new Machine();
  const [one, two] = await Promise.all([streams.acquire('a'), streams.acquire('a')]);
  expect(one).toBe(two);
  streams.release('a');
  await settled();
  expect(said).toEqual(['get a']);
  streams.release('a');
  streams.release('a');
  await settled();
  expect(said).toEqual(['get a', 'remove a']);
});

it('asks again only after the end', async () => {
  const { streams, said } = new Machine();
  await streams.acquire('a');
  streams.release('a');
  await streams.acquire('a');
  expect(said).toEqual(['get a', 'remove a', 'get a']);
});

it('tells every user that a camera has no video', async () => {
  const { streams } = new Machine(false);
  await expect(streams.acquire('a')).rejects.toThrow('no video');
  await expect(streams.acquire('a')).rejects.toThrow('no video');
  streams.release('a');
  streams.release('a');
  await settled();
});

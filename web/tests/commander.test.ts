import { describe, expect, it } from 'vitest';
import { Commander } from '../src/control/commander';

const settled = (): Promise<void> => new Promise((resolve) => { setTimeout(resolve); });

/** A machine that answers when the test says so. */
class Slow {
  readonly said: string[] = [];
  private readonly answers: (() => void)[] = [];

  readonly commander = new Commander<number, void>(
    () => Promise.resolve(),
    (value) => this.call(`set ${value}`),
    () => this.call('stop'),
    (error) => { this.said.push(`failed ${String(error)}`); },
  );

  private call(text: string): Promise<void> {
    this.said.push(text);
    return new Promise((resolve) => { this.answers.push(resolve); });
  }

  async answer(): Promise<void> {
    this.answers.shift()?.();
    await settled();
  }
}

describe('commands', () => {
  it('has one on its way and keeps only the newest', async () => {
    const slow = new Slow();
    slow.commander.command(1);
    await settled();
    for (const value of [2, 3]) slow.commander.command(value);
    expect(slow.said).toEqual(['set 1']);
    await slow.answer();
    expect(slow.said).toEqual(['set 1', 'set 3']);
    await slow.answer();
    expect(slow.said).toEqual(['set 1', 'set 3']);
  });

  it('goes on after an error', async () => {
    const said: string[] = [];
    const commander = new Commander<number, void>(
      () => Promise.resolve(),
      async (value) => { if (value === 1) throw new Error('no'); said.push(`set ${value}`); await Promise.resolve(); },
      () => Promise.resolve(),
      (error) => { said.push(String(error)); },
    );
    commander.command(1);
    commander.command(2);
    await new Promise((resolve) => { setTimeout(resolve); });
    expect(said).toEqual(['Error: no', 'set 2']);
  });
});

describe('a stop', () => {
  it('is answered before a command that follows it is sent, also when it is repeated', async () => {
    const slow = new Slow();
    slow.commander.command(1);
    await settled();
    const stopped = slow.commander.stop();
    await slow.answer(); // to the command
    await slow.answer(); // to the stop, which is repeated: the command was on its way
    expect(slow.said).toEqual(['set 1', 'stop', 'stop']);
    slow.commander.command(2);
    await settled();
    expect(slow.said).toEqual(['set 1', 'stop', 'stop']);
    await slow.answer();
    await stopped;
    expect(slow.said).toEqual(['set 1', 'stop', 'stop', 'set 2']);
  });

  it('is sent at once, drops what waits, and is repeated after the command that it may have overtaken', async () => {
    const slow = new Slow();
    slow.commander.command(1);
    slow.commander.command(2);
    await settled();
    const stopped = slow.commander.stop();
    expect(slow.said).toEqual(['set 1', 'stop']);
    await slow.answer(); // set 1 arrives after the stop
    await slow.answer(); // the stop is confirmed
    expect(slow.said).toEqual(['set 1', 'stop', 'stop']);
    await slow.answer();
    await stopped;
  });

  it('is not repeated if nothing was on its way', async () => {
    const slow = new Slow();
    const stopped = slow.commander.stop();
    await slow.answer();
    await stopped;
    expect(slow.said).toEqual(['stop']);
  });

  it('does not stop what a person commands after it', async () => {
    const slow = new Slow();
    slow.commander.command(1);
    await settled();
    const stopped = slow.commander.stop();
    slow.commander.command(2); // waits for command 1
    await slow.answer();
    await slow.answer();
    await stopped;
    expect(slow.said).toEqual(['set 1', 'stop', 'set 2']);
  });

  it('tells the caller if it could not be sent', async () => {
    const commander = new Commander<number, void>(() => Promise.resolve(), () => Promise.resolve(), () => Promise.reject(new Error('gone')), () => undefined);
    await expect(commander.stop()).rejects.toThrow('gone');
  });

  it('before the session has started sends no command at all', async () => {
    const said: string[] = [];
    let start = (): void => undefined;
    const commander = new Commander<number, string>(
      () => new Promise((resolve) => { start = () => { resolve('session'); }; }),
      async (value, session) => { said.push(`set ${value} in ${session}`); await Promise.resolve(); },
      async () => { said.push('stop'); await Promise.resolve(); },
      () => undefined,
    );
    commander.command(1);
    const stopped = commander.stop();
    start();
    await stopped;
    commander.command(2);
    await settled();
    start();
    await settled();
    expect(said).toEqual(['stop', 'stop', 'set 2 in session']);
  });
});

import { describe, expect, it } from 'vitest';
import { Commander } from '../src/control/commander';

/** A machine that answers when the test says so. */
class Slow {
  readonly said: string[] = [];
  private readonly answers: (() => void)[] = [];

  readonly commander = new Commander<number>(
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
    await new Promise((resolve) => { setTimeout(resolve); });
  }
}

describe('commands', () => {
  it('has one on its way and keeps only the newest', async () => {
    const slow = new Slow();
    for (const value of [1, 2, 3]) slow.commander.command(value);
    expect(slow.said).toEqual(['set 1']);
    await slow.answer();
    expect(slow.said).toEqual(['set 1', 'set 3']);
    await slow.answer();
    expect(slow.said).toEqual(['set 1', 'set 3']);
  });

  it('goes on after an error', async () => {
    const said: string[] = [];
    const commander = new Commander<number>(
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
  it('is sent at once, drops what waits, and is repeated after the command that it may have overtaken', async () => {
    const slow = new Slow();
    slow.commander.command(1);
    slow.commander.command(2);
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
    const stopped = slow.commander.stop();
    slow.commander.command(2); // waits for command 1
    await slow.answer();
    await slow.answer();
    await stopped;
    expect(slow.said).toEqual(['set 1', 'stop', 'set 2']);
  });

  it('tells the caller if it could not be sent', async () => {
    const commander = new Commander<number>(() => Promise.resolve(), () => Promise.reject(new Error('gone')), () => undefined);
    await expect(commander.stop()).rejects.toThrow('gone');
  });
});

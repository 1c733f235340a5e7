// Joystick, keys and gamepads: positions to commands. Pure.

/** A position of a stick: each from -1 to 1, `forward` to the front, `turn` counterclockwise, as in the base API. */
export interface Stick {
  readonly forward: number;
  readonly turn: number;
}

export const CENTER: Stick = { forward: 0, turn: 0 };
/** Deflection below which a stick rests: gamepads do not return to zero exactly. */
export const DEAD = 0.08;

const clamp = (value: number): number => Math.max(-1, Math.min(1, value));

/** Remove the dead zone and scale the rest, so that motion begins at zero. */
export function beyondDeadZone(value: number): number {
  const size = Math.abs(value);
  return size <= DEAD ? 0 : (Math.sign(value) * (Math.min(size, 1) - DEAD)) / (1 - DEAD);
}

/** Return the position for a pointer at (x, y) in a square of `size`, y downwards; limited to the circle. */
export function ofPointer(x: number, y: number, size: number): Stick {
  const half = size / 2;
  let dx = (x - half) / half;
  let dy = (half - y) / half;
  const length = Math.hypot(dx, dy);
  if (length > 1) { dx /= length; dy /= length; }
  return { forward: beyondDeadZone(dy), turn: -beyondDeadZone(dx) || 0 };
}

const KEYS: ReadonlyMap<string, readonly [number, number]> = new Map([
  ['KeyW', [1, 0]], ['ArrowUp', [1, 0]],
  ['KeyS', [-1, 0]], ['ArrowDown', [-1, 0]],
  ['KeyA', [0, 1]], ['ArrowLeft', [0, 1]],
  ['KeyD', [0, -1]], ['ArrowRight', [0, -1]],
]);

/** Return whether a key drives. `code` is KeyboardEvent.code: the place of the key, whatever the layout. */
export const drives = (code: string): boolean => KEYS.has(code);

/** Return the position for the keys that are down. */
export function ofKeys(down: Iterable<string>): Stick {
  let [forward, turn] = [0, 0];
  for (const code of down) {
    const [f, t] = KEYS.get(code) ?? [0, 0];
    forward += f;
    turn += t;
  }
  return { forward: clamp(forward), turn: clamp(turn) };
}

/** Return the position for the axes of a gamepad of the standard layout: the left stick. */
export function ofGamepad(axes: readonly number[]): Stick {
  return { forward: -beyondDeadZone(axes[1] ?? 0) || 0, turn: -beyondDeadZone(axes[0] ?? 0) || 0 };
}

export const isCenter = (stick: Stick): boolean => stick.forward === 0 && stick.turn === 0;

/** Scale a position by limits from 0 to 1. */
export const limited = (stick: Stick, linear: number, angular: number): Stick => ({
  forward: stick.forward * linear,
  turn: stick.turn * angular,
});

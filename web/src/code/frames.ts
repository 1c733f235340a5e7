// The frames of a document in space: place and rotation of each component, and the lines of its shape. Pure.
import { about, oriented, product, sum, turned, UPRIGHT, type Rotation, type Vector } from '../base/space';
import { memberOf, nodeAt, valueOf, wordAt, type Node } from './tree';

export interface Placed {
  readonly name: string;
  readonly parent: string; // empty for the world
  readonly place: Vector; // mm, in the world
  readonly rotation: Rotation;
  readonly lines: readonly (readonly Vector[])[]; // of its shape, in the world
  readonly index: number; // in components
  readonly lost: string; // why it is not in its place; empty if it is
}

type Values = Readonly<Record<string, unknown>>;
const DEEPEST = 100; // frames inside each other; more is a circle
const DEGREES = 180 / Math.PI;
const ROUND = Array.from({ length: 17 }, (_, step) => (step * Math.PI) / 8);

const number = (of: Values, key: string): number => (typeof of[key] === 'number' && Number.isFinite(of[key]) ? of[key] : 0);
const object = (value: unknown): Values => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Values) : {});
const vector = (value: unknown): Vector => [number(object(value), 'x'), number(object(value), 'y'), number(object(value), 'z')];

/** Return the rotation of an orientation of any form of documents; none if it has no direction. */
export function rotationOf(orientation: unknown): Rotation {
  const value = object(object(orientation)['value']);
  const axis = vector(value);
  const angle = number(value, 'th');
  const still = axis.every((each) => each === 0);
  switch (object(orientation)['type']) {
    case 'ov_radians': return still ? UPRIGHT : oriented(axis, angle * DEGREES);
    case 'axis_angles': return still ? UPRIGHT : about(axis, angle * DEGREES);
    case 'euler_angles': return product(product(about([0, 0, 1], number(value, 'yaw') * DEGREES), about([0, 1, 0], number(value, 'pitch') * DEGREES)), about([1, 0, 0], number(value, 'roll') * DEGREES));
    case 'quaternion': return still ? UPRIGHT : about(axis, 2 * Math.atan2(Math.hypot(...axis), number(value, 'w')) * DEGREES);
    default: return still ? UPRIGHT : oriented(axis, angle);
  }
}

/** Return the lines of a shape around its own origin. */
export function shapeOf(geometry: unknown): Vector[][] {
  const of = object(geometry);
  const r = number(of, 'r');
  const circle = (across: (angle: number) => Vector): Vector[] => ROUND.map(across);
  const kind = of['type'] ?? (r > 0 ? (number(of, 'l') > 0 ? 'capsule' : 'sphere') : 'box');
  if (kind === 'box') {
    const [x, y, z] = [number(of, 'x') / 2, number(of, 'y') / 2, number(of, 'z') / 2];
    const ring = (height: number): Vector[] => [[-x, -y, height], [x, -y, height], [x, y, height], [-x, y, height], [-x, -y, height]];
    return [ring(-z), ring(z), ...ring(z).slice(0, 4).map((each): Vector[] => [[each[0], each[1], -z], each])];
  }
  if (kind === 'sphere') {
    return [
      circle((angle) => [r * Math.cos(angle), r * Math.sin(angle), 0]),
      circle((angle) => [r * Math.cos(angle), 0, r * Math.sin(angle)]),
      circle((angle) => [0, r * Math.cos(angle), r * Math.sin(angle)]),
    ];
  }
  if (kind === 'capsule') {
    const half = Math.max(0, number(of, 'l') / 2 - r); // l is the whole length
    const side = (turn: (a: number, b: number) => Vector): Vector[] => ROUND.map((angle) => {
      const [along, height] = [r * Math.cos(angle), r * Math.sin(angle)];
      return turn(along, height + (height >= 0 ? half : -half));
    });
    return [
      circle((angle) => [r * Math.cos(angle), r * Math.sin(angle), half]), circle((angle) => [r * Math.cos(angle), r * Math.sin(angle), -half]),
      side((along, height) => [along, 0, height]), side((along, height) => [0, along, height]),
    ];
  }
  return [];
}

/** Return the components of a text that have a frame, in the world. */
export function framesOf(text: string, root: Node | undefined): Placed[] {
  const own = new Map<string, { frame: Values; index: number }>();
  for (const [index, item] of (nodeAt(root, ['components'])?.items ?? []).entries()) {
    const node = memberOf(item, 'frame')?.value;
    const name = wordAt(text, item, ['name']);
    if (node?.kind === 'object' && name) own.set(name, { frame: object(valueOf(text, node)), index });
  }
  const done = new Map<string, Placed>();
  const place = (name: string, depth: number): Placed | undefined => {
    const ready = done.get(name);
    const entry = own.get(name);
    if (ready !== undefined || entry === undefined) return ready;
    const { frame, index } = entry;
    const parent = typeof frame['parent'] === 'string' && frame['parent'] !== 'world' ? frame['parent'] : '';
    const outer = parent === '' || depth > DEEPEST ? undefined : place(parent, depth + 1);
    const lost = depth > DEEPEST ? 'its parents are a circle' : parent !== '' && outer === undefined ? `${parent} has no frame` : outer?.lost ?? '';
    const rotation = product(outer?.rotation ?? UPRIGHT, rotationOf(frame['orientation']));
    const at = sum(outer?.place ?? [0, 0, 0], turned(outer?.rotation ?? UPRIGHT, vector(frame['translation'])));
    const geometry = object(frame['geometry']);
    const inside = rotationOf(geometry['orientation']);
    const shift = vector(geometry['translation']);
    const lines = shapeOf(frame['geometry'] === undefined ? { type: 'none' } : geometry).map((line) => line.map((point) => sum(at, turned(rotation, sum(shift, turned(inside, point))))));
    const placed: Placed = { name, parent, place: at, rotation, lines, index, lost };
    done.set(name, placed);
    return placed;
  };
  for (const name of own.keys()) place(name, 0);
  return [...own.keys()].flatMap((name) => done.get(name) ?? []);
}

export interface Camera {
  readonly yaw: number; // degrees around z
  readonly pitch: number; // degrees above the ground
}

/** Return a point of the world on the screen, in mm: to the right, and down. */
export function seen(point: Vector, camera: Camera): readonly [number, number] {
  const view = product(about([1, 0, 0], camera.pitch - 90), about([0, 0, 1], camera.yaw));
  const [x, y] = turned(view, point);
  return [x, -y];
}

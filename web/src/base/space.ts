// Places and rotations in space, and the scale of planes that show them. Pure.

export type Vector = readonly [number, number, number];
/** The rows of a rotation. */
export type Rotation = readonly [Vector, Vector, Vector];

export const UPRIGHT: Rotation = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
const POLE = 1e-9; // closer to a pole, the longitude is undefined and taken as zero
const RADIANS = Math.PI / 180;

const dot = (a: Vector, b: Vector): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

export const sum = (a: Vector, b: Vector): Vector => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const scaled = (a: Vector, by: number): Vector => [a[0] * by, a[1] * by, a[2] * by];
export const length = (a: Vector): number => Math.hypot(...a);
export const turned = (by: Rotation, a: Vector): Vector => [dot(by[0], a), dot(by[1], a), dot(by[2], a)];

export function product(a: Rotation, b: Rotation): Rotation {
  const column = (at: 0 | 1 | 2): Vector => [b[0][at], b[1][at], b[2][at]];
  const row = (each: Vector): Vector => [dot(each, column(0)), dot(each, column(1)), dot(each, column(2))];
  return [row(a[0]), row(a[1]), row(a[2])];
}

/** Return the rotation about an axis by an angle in degrees; none about an axis without a direction. */
export function about(axis: Vector, degrees: number): Rotation {
  const size = length(axis);
  if (size === 0) return UPRIGHT;
  const [x, y, z] = scaled(axis, 1 / size);
  const cos = Math.cos(degrees * RADIANS), sin = Math.sin(degrees * RADIANS), rest = 1 - cos;
  return [
    [cos + x * x * rest, x * y * rest - z * sin, x * z * rest + y * sin],
    [y * x * rest + z * sin, cos + y * y * rest, y * z * rest - x * sin],
    [z * x * rest - y * sin, z * y * rest + x * sin, cos + z * z * rest],
  ];
}

/** Return the rotation of an orientation vector: its z axis has the direction of `axis`, around which it is turned by `degrees`. */
export function oriented(axis: Vector, degrees: number): Rotation {
  const size = length(axis);
  if (size === 0) return about([0, 0, 1], degrees);
  const [x, y, z] = scaled(axis, 1 / size);
  const longitude = 1 - Math.abs(z) < POLE ? 0 : Math.atan2(y, x) / RADIANS;
  const latitude = Math.acos(Math.min(1, Math.max(-1, z))) / RADIANS;
  return product(product(about([0, 0, 1], longitude), about([0, 1, 0], latitude)), about([0, 0, 1], degrees));
}

/** Return half the side of a plane around the origin that contains these coordinates: 1, 2 or 5 times a power of ten. */
export function halfOf(coordinates: readonly number[], least = 100): number {
  const most = Math.max(least, ...coordinates.filter(Number.isFinite).map(Math.abs));
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5].find((digit) => digit * power >= most) ?? 10) * power;
}

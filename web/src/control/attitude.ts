// Attitude of a body from an orientation vector, and tracks from positions. Pure.

/** Where the z axis of the body points, and the rotation about it in degrees. */
export interface OrientationVector {
  readonly oX: number;
  readonly oY: number;
  readonly oZ: number;
  readonly theta: number;
}

/** Rotations in degrees: roll about x, then pitch about y, then yaw about z. */
export interface Attitude {
  readonly roll: number;
  readonly pitch: number;
  readonly yaw: number;
}

const DEGREE = Math.PI / 180;
const POLE = 1 - 1e-4; // beyond it the vector is vertical, and has no longitude

/** Return roll, pitch and yaw. An orientation vector is the rotation about z by its longitude, y by its latitude, z by theta. */
export function attitude({ oX, oY, oZ, theta }: OrientationVector): Attitude {
  const length = Math.hypot(oX, oY, oZ) || 1;
  const [x, y, z] = [oX / length, oY / length, oZ / length];
  const longitude = Math.abs(z) > POLE ? 0 : Math.atan2(y, x);
  const latitude = Math.acos(Math.max(-1, Math.min(1, z)));
  const [half, sum, difference] = [latitude / 2, (longitude + theta * DEGREE) / 2, (longitude - theta * DEGREE) / 2];
  const [w, i, j, k] = [
    Math.cos(half) * Math.cos(sum), -Math.sin(half) * Math.sin(difference),
    Math.sin(half) * Math.cos(difference), Math.cos(half) * Math.sin(sum),
  ];
  return {
    roll: Math.atan2(2 * (w * i + j * k), 1 - 2 * (i * i + j * j)) / DEGREE,
    pitch: Math.asin(Math.max(-1, Math.min(1, 2 * (w * j - k * i)))) / DEGREE,
    yaw: Math.atan2(2 * (w * k + i * j), 1 - 2 * (j * j + k * k)) / DEGREE,
  };
}

/** A position in degrees. */
export interface Place {
  readonly latitude: number;
  readonly longitude: number;
}

const METERS = 111_320; // for a degree of latitude

/** Return positions as meters east and north of the first one. */
export function local(places: readonly Place[]): { x: number; y: number }[] {
  const [first] = places;
  if (first === undefined) return [];
  const scale = METERS * Math.cos(first.latitude * DEGREE);
  return places.map(({ latitude, longitude }) => ({ x: (longitude - first.longitude) * scale, y: (latitude - first.latitude) * METERS }));
}

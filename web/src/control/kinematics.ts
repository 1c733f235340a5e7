// Limits of joints, from what an arm says of its kinematics. Pure.

/** Limits of a joint in degrees; in millimeters if it is prismatic. */
export interface Limits {
  readonly low: number;
  readonly high: number;
}

const FULL: Limits = { low: -360, high: 360 };

/** Return the limits of the joints in their order; a joint without usable limits has a full turn in each direction. */
export function limitsOf(kinematics: { readonly joints?: readonly { readonly min: number; readonly max: number }[] }): Limits[] {
  return (kinematics.joints ?? []).map(({ min, max }) => (Number.isFinite(min) && Number.isFinite(max) && min < max ? { low: min, high: max } : FULL));
}

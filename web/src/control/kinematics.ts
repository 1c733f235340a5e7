// What an arm says of its kinematics: limits of joints, and where the joints are. Pure.

import { about, length, oriented, product, scaled, sum, turned, UPRIGHT, type Rotation, type Vector } from '../base/space';

/** Limits of a joint in degrees; in millimeters if it is prismatic. */
export interface Limits {
  readonly low: number;
  readonly high: number;
}

interface Point { readonly x?: number; readonly y?: number; readonly z?: number }

/** Kinematics in the format SVA, as far as this page reads them. */
export interface Kinematics {
  readonly joints?: readonly { readonly id: string; readonly type: string; readonly parent: string; readonly axis?: Point; readonly min: number; readonly max: number }[];
  readonly links?: readonly unknown[];
}

interface Link {
  readonly id: string;
  readonly parent: string;
  readonly translation?: Point;
  readonly orientation?: { readonly type: string; readonly value: { readonly x?: number; readonly y?: number; readonly z?: number; readonly th?: number } };
}

/** A part of a chain from the base to the end: a rigid link, or a joint. */
export type Part =
  | { readonly kind: 'link'; readonly translation: Vector; readonly rotation: Rotation }
  | { readonly kind: 'joint'; readonly slides: boolean; readonly axis: Vector; readonly most: number };

const FULL: Limits = { low: -360, high: 360 };

/** Return the limits of the joints in their order; a joint without usable limits has a full turn in each direction. */
export function limitsOf(kinematics: { readonly joints?: readonly { readonly min: number; readonly max: number }[] }): Limits[] {
  return (kinematics.joints ?? []).map(({ min, max }) => (Number.isFinite(min) && Number.isFinite(max) && min < max ? { low: min, high: max } : FULL));
}

const vectorOf = (point: Point | undefined): Vector => [point?.x ?? 0, point?.y ?? 0, point?.z ?? 0];
const DEGREES = 180 / Math.PI;

function rotationOf({ orientation }: Link): Rotation | null {
  if (!orientation) return UPRIGHT;
  const axis = vectorOf(orientation.value), angle = orientation.value.th ?? 0;
  switch (orientation.type) {
    case 'ov_degrees': return oriented(axis, angle);
    case 'ov_radians': return oriented(axis, angle * DEGREES);
    case 'axis_angles': return about(axis, angle * DEGREES);
    default: return null;
  }
}

function partOfLink(link: Link): Part | null {
  const rotation = rotationOf(link);
  return rotation && { kind: 'link', translation: vectorOf(link.translation), rotation };
}

/** Return the parts from the base to the end; null if they are not a chain, or are in a form that this page does not read. */
export function chainOf({ joints = [], links = [] }: Kinematics): Part[] | null {
  const next = new Map<string, { id: string; part: Part | null }>();
  for (const link of links as readonly Link[]) next.set(link.parent, { id: link.id, part: partOfLink(link) });
  for (const joint of joints) {
    const slides = joint.type === 'prismatic';
    next.set(joint.parent, { id: joint.id, part: { kind: 'joint', slides, axis: vectorOf(joint.axis), most: Math.max(Math.abs(joint.min), Math.abs(joint.max)) } });
  }
  const chain: Part[] = [];
  for (let at = next.get('world'); at; at = next.get(at.id)) {
    if (!at.part || chain.length >= next.size) return null; // unknown, or a circle
    chain.push(at.part);
  }
  return chain.length > 0 && chain.length === joints.length + links.length ? chain : null;
}

/** Return the places of the base, of each joint, and of the end, with joints at `values` in degrees, or millimeters if they slide. */
export function jointsOf(chain: readonly Part[], values: readonly number[]): Vector[] {
  const places: Vector[] = [[0, 0, 0]];
  let place: Vector = [0, 0, 0], rotation = UPRIGHT, joint = 0;
  for (const part of chain) {
    if (part.kind === 'link') {
      place = sum(place, turned(rotation, part.translation));
      rotation = product(rotation, part.rotation);
    } else {
      const value = values[joint++] ?? 0;
      if (part.slides) place = sum(place, turned(rotation, scaled(part.axis, value / (length(part.axis) || 1))));
      else rotation = product(rotation, about(part.axis, value));
    }
    places.push(place);
  }
  return places.filter((each, at) => at === 0 || each.some((value, axis) => value !== places[at - 1]?.[axis]));
}

/** Return how far the end can be from the base at most. */
export function reachOf(chain: readonly Part[]): number {
  return chain.reduce((most, part) => most + (part.kind === 'link' ? length(part.translation) : part.slides && Number.isFinite(part.most) ? part.most : 0), 0);
}

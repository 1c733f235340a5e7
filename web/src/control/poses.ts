// Poses of a pose tracker. The SDK has a client for it, which does not read poses; the call is described here as it describes others.

import type { MethodKind, Message, ScalarType } from '@bufbuild/protobuf';
import { commonApi, type RobotClient } from '@viamrobotics/sdk';
import { oriented, type Vector } from '../base/space';

/** A tracked body: millimeters in its frame, and where its x axis points. */
export interface Body {
  readonly name: string;
  readonly frame: string;
  readonly place: Vector;
  readonly forward: Vector;
}

interface Request extends Message<Request> { name: string }
interface Response extends Message<Response> { bodyPoses: Record<string, commonApi.PoseInFrame> }

const { runtime } = commonApi.PoseInFrame;
// The SDK contains the library of these enums and does not export it: only their types are at hand.
/* eslint-disable @typescript-eslint/no-unsafe-enum-assignment */
const TEXT = 9 as ScalarType.STRING;
const UNARY = 0 as MethodKind.Unary;
/* eslint-enable @typescript-eslint/no-unsafe-enum-assignment */
const PACKAGE = 'viam.component.posetracker.v1';
const SERVICE = {
  typeName: `${PACKAGE}.PoseTrackerService`,
  methods: {
    getPoses: {
      name: 'GetPoses',
      I: runtime.makeMessageType<Request>(`${PACKAGE}.GetPosesRequest`, () => [{ no: 1, name: 'name', kind: 'scalar', T: TEXT }]),
      O: runtime.makeMessageType<Response>(`${PACKAGE}.GetPosesResponse`, () => [
        { no: 1, name: 'body_poses', kind: 'map', K: TEXT, V: { kind: 'message', T: commonApi.PoseInFrame } },
      ]),
      kind: UNARY,
    },
  },
} as const;

/** Return a function that reads the bodies that a tracker sees, by name. */
export function bodiesOf(client: RobotClient, name: string): () => Promise<Body[]> {
  const tracker = client.createServiceClient(SERVICE);
  return async () => {
    const { bodyPoses } = await tracker.getPoses({ name });
    return Object.entries(bodyPoses).map(([body, { referenceFrame, pose }]) => bodyOf(body, referenceFrame, pose))
      .sort((one, two) => one.name.localeCompare(two.name));
  };
}

type Pose = Pick<commonApi.Pose, 'x' | 'y' | 'z' | 'oX' | 'oY' | 'oZ' | 'theta'>;

/** Return a body from its pose; without one, it is at the origin. */
export function bodyOf(name: string, frame: string, pose: Pose | undefined): Body {
  const rotation = oriented([pose?.oX ?? 0, pose?.oY ?? 0, pose?.oZ ?? 1], pose?.theta ?? 0);
  return { name, frame, place: [pose?.x ?? 0, pose?.y ?? 0, pose?.z ?? 0], forward: [rotation[0][0], rotation[1][0], rotation[2][0]] };
}

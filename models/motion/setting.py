"""Makes the problem of a motion from the frames of the machine, its components and the world state of the request."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import trio

from engine import Arm, Component, Gantry, Gripper, MotionConstraints, Others, ResourceAccess, WorldState
from engine.geometry import ORIGIN_SUFFIX, Chain, FramePart, Frames, Link, SuppliedFrame
from engine.geometry import Transform as Placement
from engine.kinematics import Flat, Mechanism, compose, deviation, flat, inverse_of, mechanism_of, transform_of
from models.motion.mover import Joints, joints_of
from models.motion.options import Options, allowed_of, check_size, constraints_of
from models.planner.build import arm_solids, check_pose, solid_of
from models.planner.problem import PlanningProblem, Solid
from schema import WORLD, ErrorKind, Geometry, MachineError, Pose, PoseInFrame, ResourceName
from support import gather

_MOVERS: Final = (Arm.API, Gantry.API)
_BREATH: Final = 10  # shapes between checkpoints


@dataclass(frozen=True, slots=True)
class MotionRequest:
    """A motion of `frame` to `destination`."""

    frame: str
    destination: PoseInFrame
    world: WorldState
    constraints: MotionConstraints
    options: Options


def frames_with(frames: Frames, transforms: Sequence[SuppliedFrame]) -> Frames:
    """Return frames with those of a request; INVALID for a pose that is not finite."""
    parts = []
    for transform in transforms:
        check_pose(transform.pose_in_observer_frame.pose, f"the frame {transform.reference_frame!r}")
        if transform.reference_frame in ("", WORLD):
            raise MachineError(
                f"a transform has the reference frame {transform.reference_frame!r}",
                kind=ErrorKind.INVALID,
                remedy="name the new frame",
            )
        parent = transform.pose_in_observer_frame.reference_frame or WORLD
        parts.append(
            FramePart(
                transform.reference_frame,
                parent,
                transform.pose_in_observer_frame.pose,
                transform.physical_object,  # a mesh is refused when shapes are compared
            )
        )
    return frames.with_parts(parts)


def _has_shape(shape: Geometry | None) -> bool:
    return shape is not None and shape != Geometry()


class Setting:
    """The frames of a request, and the components with joints: where they are, and what moves."""

    def __init__(self, frames: Frames, others: Others) -> None:
        self.frames = frames
        self._others = others
        self.joints: dict[str, Joints] = {}  # of moving parts, by name
        self.moved: dict[str, Pose] = {}  # poses of moving parts in their `_origin` frames
        self._shapes: dict[str, Sequence[Geometry]] = {}  # that drivers report, by part

    def mover(self, frame: str) -> FramePart:
        """Return the part that moves a frame: the nearest arm or gantry on its way to the world."""
        for part in self.frames.moving(frame):
            if ResourceName.parse(part.resource).api in _MOVERS:
                return part
        raise MachineError(
            f"nothing moves the frame {frame!r}: it is not attached to an arm or a gantry",
            kind=ErrorKind.UNSUPPORTED,
            remedy="choose the arm, or give its frame an arm as parent",
        )

    def door(self, part: FramePart) -> ResourceAccess:
        """Return the access to the component of a part; UNAVAILABLE if it is not ready."""
        name = ResourceName.parse(part.resource)
        door = self._others(name.api).get(name)
        if door is None:
            raise MachineError(
                f"{part.resource} is not ready, so nothing can be said about where it is",
                kind=ErrorKind.UNAVAILABLE,
                remedy="its state in the machine's status says why",
            )
        return door

    async def read(self) -> None:
        """Read kinematics, positions and shapes of all components with joints, concurrently."""
        parts = [part for part in self.frames.ordered() if part.moves and part.resource]
        await gather(*(partial(self._read, part) for part in parts))

    async def _read(self, part: FramePart) -> None:
        async with self.door(part).use() as driver:
            try:
                joints = await joints_of(driver, part.name)
            except (NotImplementedError, MachineError) as problem:
                if not isinstance(driver, Gripper) or not _is_unsupported(problem):
                    raise
                joints = None  # a gripper without kinematics does not move
            if joints is None:
                self.moved[part.name] = Pose()
            else:
                self.joints[part.name] = joints
                mechanism = mechanism_of(joints.chain)
                end = mechanism.output(mechanism.to_values(joints.positions))
                self.moved[part.name] = _pose(end)
            own = joints is not None and any(isinstance(link, Link) and link.shapes for link in joints.chain.parts)
            if isinstance(driver, Gripper) and part.geometry is None and not own:
                self._shapes[part.name] = await _reported(driver)

    def place(self, frame: str, inside: str = WORLD) -> Flat:
        """Return the place of a frame in another one; NOT_FOUND for a frame that does not exist."""
        return flat(Placement.of(self.frames.transform(PoseInFrame(frame), inside, self.moved).pose))

    async def problem(self, request: MotionRequest, part: FramePart) -> PlanningProblem:
        """Return the problem of moving `part`."""
        joints = self.joints[part.name]
        own = mechanism_of(joints.chain)
        base = self.place(part.name + ORIGIN_SUFFIX)
        count = len(own.axes)
        first = replace(own.axes[0], placement=compose(base, own.axes[0].placement))
        tip = compose(own.tip, self.place(request.frame, part.name))
        mechanism = Mechanism((first, *own.axes[1:]), tip)
        start = own.to_values(joints.positions)
        goal_pose = self.frames.transform(request.destination, WORLD, self.moved).pose
        goal = flat(Placement.of(goal_pose))
        length, angle = deviation(mechanism.output(start), goal)
        solids = await self._solids(request.world, part, base, inverse_of(mechanism.bodies(start)[-1]), count)
        return PlanningProblem(
            mechanism=mechanism,
            start=start,
            goal=goal,
            solids=solids,
            allowed=self._allowed(request.constraints, solids),
            constraints=constraints_of(request.constraints, length, angle),
            margin=request.options.margin,
            speeds=_speeds(joints.chain, own, request.options.speed),
            seed=request.options.seed,
            seconds=request.options.seconds,
        )

    async def _solids(self, world: WorldState, mover: FramePart, base: Flat, back: Flat, count: int) -> list[Solid]:
        """Return all shapes. `back` leads from the world to the last body of the mover."""
        attached = partial(self._attachment, mover, back, count)
        solids: list[Solid] = []
        for part in self.frames.ordered():
            await trio.lowlevel.checkpoint()
            name = part.name
            joints = self.joints.get(name)
            if name == mover.name:
                own = arm_solids(joints.chain, name) if joints is not None else []
                solids += [replace_at(solid, compose(base, solid.at)) if not solid.body else solid for solid in own]
            elif joints is not None:
                frames = mechanism_of(joints.chain)
                bodies = frames.bodies(frames.to_values(joints.positions))
                body, at = attached(name + ORIGIN_SUFFIX)
                for solid in arm_solids(joints.chain, name):
                    where = compose(compose(at, bodies[solid.body]), solid.at)
                    solids.append(Solid(solid.label, name, body, where, solid.half, solid.radius))
            shapes = [part.geometry] if part.geometry is not None else self._shapes.get(name, ())
            for shape in shapes:
                body, at = attached(name + ORIGIN_SUFFIX if part.moves else name)
                solids.append(solid_of(shape, shape.label or name, name, body, at))
        number = 0
        places: dict[str, tuple[int, Flat]] = {}
        for group in world.obstacles:
            frame = self.frames.frame_of(group.reference_frame or WORLD)
            if frame not in places:
                places[frame] = attached(frame)
            body, at = places[frame]
            for shape in group.geometries:
                number += 1
                label = shape.label or f"obstacle {number}"
                solids.append(solid_of(shape, label, label, body, at))
                if not number % _BREATH:
                    await trio.lowlevel.checkpoint()
        return solids

    def _attachment(self, mover: FramePart, back: Flat, count: int, frame: str) -> tuple[int, Flat]:
        """Return the body to which a frame is fixed, and its place in that body."""
        if any(part.name == mover.name for part in self.frames.moving(frame)):
            return count, compose(back, self.place(frame))
        return 0, self.place(frame)

    @staticmethod
    def _allowed(constraints: MotionConstraints, solids: Sequence[Solid]) -> list[tuple[str, str]]:
        pairs = allowed_of(constraints)
        if not pairs:
            return []
        names = {solid.label for solid in solids} | {solid.owner for solid in solids}
        for pair in pairs:
            for name in pair:
                if name not in names:
                    listed = ", ".join(sorted(names)[:20])
                    raise MachineError(
                        f"collision_specification names {name[:40]!r}, which has no shape",
                        kind=ErrorKind.INVALID,
                        remedy=f"use one of: {listed}",
                    )
        return pairs


def replace_at(solid: Solid, at: Flat) -> Solid:
    """Return a solid at another place."""
    return Solid(solid.label, solid.owner, solid.body, at, solid.half, solid.radius)


def _pose(m: Flat) -> Pose:
    return transform_of(m).pose()


def _speeds(chain: Chain, own: Mechanism, limit: float | None) -> list[float]:
    speeds = []
    for joint, axis in zip(chain.joints, own.axes, strict=True):
        speed = joint.speed if axis.slides or limit is None else min(joint.speed, limit)
        speeds.append(speed if axis.slides else math.radians(speed))
    return speeds


def _is_unsupported(problem: Exception) -> bool:
    return isinstance(problem, NotImplementedError) or (
        isinstance(problem, MachineError) and problem.kind is ErrorKind.UNSUPPORTED
    )


async def _reported(driver: Component) -> Sequence[Geometry]:
    """Return the shapes that a driver reports; none if it reports none."""
    try:
        return [shape for shape in await driver.get_geometries() if _has_shape(shape)]
    except (NotImplementedError, MachineError) as problem:
        if _is_unsupported(problem):
            return ()
        raise


def check_request(request: MotionRequest) -> None:
    """Raise MachineError for a request that is too large or has numbers that are not finite."""
    check_size(request.world)
    check_pose(request.destination.pose, "the destination")
    check_named(request.frame)


def check_named(name: str) -> None:
    """Raise INVALID if a request names no component."""
    if not name:
        raise MachineError("no component is named", kind=ErrorKind.INVALID, remedy="set component_name")

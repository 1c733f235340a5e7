"""Motions of a motion service: plans them, and moves the arm or gantry that a frame is attached to.

Loaded with the first motion, because most machines never have any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import trio

from engine import (
    ComponentState,
    Extra,
    MotionConstraints,
    PlanStep,
    Resource,
    WorldState,
)
from engine.geometry import FramePart, SuppliedFrame, frames_of_document, pose_of
from engine.kinematics import apart, transform_of
from models.motion.attributes import MotionConfig
from models.motion.executions import Executions
from models.motion.globe import GlobeRequest, drive, request_of
from models.motion.mover import execute, joints_of
from models.motion.options import Options, check_transforms, options_of
from models.motion.setting import MotionRequest, Setting, check_named, check_request, frames_with
from models.planner.problem import Planner, PlanningProblem, Trajectory
from models.planner.process import ProcessPlanner
from schema import WORLD, ErrorKind, MachineError, Pose, PoseInFrame
from support import gather

MOVED: Final = 0.02  # radians (or 2 mm) that an arm may differ from where its plan begins


class PlanCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of Move in a command."""

    component_name: str
    destination: PoseInFrame
    world_state: WorldState | None = None
    constraints: MotionConstraints | None = None
    extra: dict[str, Any] | None = None


class Motions:
    """The motions of `service`, whose attributes are a MotionConfig, and their executions."""

    planner: Planner
    drive_request = staticmethod(request_of)

    def __init__(self, service: Resource) -> None:
        self._service = service
        self.executions = Executions()
        self.planner = ProcessPlanner()

    async def move(
        self,
        name: str,
        destination: PoseInFrame | None,
        world_state: WorldState | None,
        constraints: MotionConstraints | None,
        extra: Extra,
    ) -> None:
        """Plan a motion of the component `name` and execute it; returns on arrival."""
        setting, request = self._opened(name, destination, world_state, constraints, extra)
        part = setting.mover(request.frame)
        await self.executions.replace(part.name)
        with self.executions.running(name, part.name) as execution:
            problem, trajectory = await self._planned(setting, request)
            own = problem.mechanism
            execution.steps = [
                PlanStep({name: ComponentState(transform_of(own.output(values)).pose())})
                for values in trajectory.points
            ]
            async with setting.door(part).use() as driver:
                now = (await joints_of(driver, part.name)).positions
                if apart(own.axes, own.to_values(now), problem.start) > MOVED:
                    raise MachineError(
                        f"{part.name} has moved while its motion was planned",
                        kind=ErrorKind.PRECONDITION,
                        remedy="stop what else moves it, and try again",
                    )
                positions = [own.to_positions(values) for values in trajectory.points]
                await execute(driver, positions, request.options.speed)

    def _opened(
        self,
        name: str,
        destination: PoseInFrame | None,
        world: WorldState | None,
        constraints: MotionConstraints | None,
        extra: Extra,
    ) -> tuple[Setting, MotionRequest]:
        """Return a checked request, and the frames in which it is meant."""
        if destination is None:
            raise MachineError("there is no destination", kind=ErrorKind.INVALID, remedy="set destination")
        config: MotionConfig = self._service.attributes
        options = options_of(extra, Options(config.margin_mm, config.plan_seconds, config.seed))
        world, constraints = world or WorldState(), constraints or MotionConstraints()
        check_request(MotionRequest(name, destination, world, constraints, options))
        frames = frames_with(frames_of_document(self._service.document()), world.transforms)
        return Setting(frames, self._service.others), MotionRequest(
            frames.frame_of(name), destination, world, constraints, options
        )

    async def _planned(self, setting: Setting, request: MotionRequest) -> tuple[PlanningProblem, Trajectory]:
        part = setting.mover(request.frame)
        await setting.read()
        problem = await setting.problem(request, part)
        if not any(solid.owner == part.name for solid in problem.solids):
            self._service.log.warning(
                "the kinematics have no shapes, so nothing is known about collisions", component=part.name
            )
        return problem, await self.planner(problem)

    async def drive(self, request: GlobeRequest, *, task_status: trio.TaskStatus[str]) -> None:
        """Drive a base; `task_status` gets the id of the execution when the first plan is made."""
        await drive(self._service, self.executions, request, task_status=task_status)

    async def pose(self, name: str, destination_frame: str, transforms: Sequence[SuppliedFrame]) -> PoseInFrame:
        """Return the pose of the component `name` in a frame (default `world`)."""
        check_transforms(len(transforms))
        frames = frames_with(frames_of_document(self._service.document()), transforms)
        check_named(name)
        frame = frames.frame_of(name)
        destination = destination_frame or WORLD
        setting, moved = Setting(frames, self._service.others), dict[str, Pose]()

        async def read(part: FramePart) -> None:
            async with setting.door(part).use() as driver:
                moved[part.name] = await pose_of(driver)

        await gather(*(partial(read, part) for part in frames.moving(frame, destination)))
        return frames.transform(PoseInFrame(frame), destination, moved)

    async def plan(self, fields: Any) -> Mapping[str, Any]:
        """Plan a motion with the fields of Move, without moving: see `BuiltinMotion.do_command`."""
        try:
            call = msgspec.convert(fields, PlanCommand)
        except msgspec.ValidationError as error:
            raise MachineError(f"plan: {error}", kind=ErrorKind.INVALID) from None
        problem, trajectory = await self._planned(
            *self._opened(call.component_name, call.destination, call.world_state, call.constraints, call.extra)
        )
        own = problem.mechanism
        return {
            "joint_positions": [own.to_positions(values) for values in trajectory.points],
            "times": trajectory.times,
            "poses": [msgspec.to_builtins(transform_of(own.output(values)).pose()) for values in trajectory.points],
            "method": trajectory.method,
            "clearance_mm": trajectory.clearance,
        }

"""The motion service `builtin`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import msgspec
import trio

from engine import (
    Actuator,
    Attributes,
    ComponentState,
    Extra,
    GeoGeometry,
    Motion,
    MotionConfiguration,
    MotionConstraints,
    PlanHistory,
    PlanStatusWithID,
    PlanStep,
    Started,
    StreamOptions,
    StreamTargets,
    Unsupported,
    WorldState,
    component_of,
    model,
)
from engine.geometry import FramePart, SuppliedFrame, frames_of_document, pose_of
from engine.kinematics import apart, transform_of
from models.motion.attributes import MotionConfig
from models.motion.executions import Executions
from models.motion.mover import execute, joints_of
from models.motion.options import Options, check_transforms, options_of
from models.motion.setting import MotionRequest, Setting, check_named, check_request, frames_with
from models.planner.problem import Planner, PlanningProblem, Trajectory
from schema import WORLD, ErrorKind, Geometry, GeoPoint, MachineError, Pose, PoseInFrame, ResourceName
from support import gather

MOVED: Final = 0.02  # radians (or 2 mm) that an arm may differ from where its plan begins
PLAN: Final = "plan"
"""Command that plans a motion and does not execute it."""


@model("rdk:builtin:builtin")
class BuiltinMotion(Actuator, Motion):
    """Plans motions in a separate process, and moves the arm or gantry that a frame is attached to.

    A newer motion of the same arm replaces the older one. Motions of different arms run at the same time; each sees
    the others where they are when it is planned.
    """

    Config: ClassVar[type[Attributes]] = MotionConfig
    planner: Planner

    async def run(self, *, task_status: Started) -> None:
        """Accept motions until cancelled."""
        from models.planner.process import ProcessPlanner

        self.executions = Executions()
        self.planner = ProcessPlanner()
        task_status.started()
        await trio.sleep_forever()

    async def move(
        self,
        destination: PoseInFrame | None = None,
        component_name_deprecated: ResourceName | None = None,
        world_state: WorldState | None = None,
        constraints: MotionConstraints | None = None,
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> bool:
        """Plan a motion and execute it. Returns True on arrival."""
        name = component_of(component_name, component_name_deprecated)
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
        return True

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
        config: MotionConfig = self.attributes
        options = options_of(extra, Options(config.margin_mm, config.plan_seconds, config.seed))
        world, constraints = world or WorldState(), constraints or MotionConstraints()
        check_request(MotionRequest(name, destination, world, constraints, options))
        frames = frames_with(frames_of_document(self.document()), world.transforms)
        return Setting(frames, self.others), MotionRequest(
            frames.frame_of(name), destination, world, constraints, options
        )

    async def _planned(self, setting: Setting, request: MotionRequest) -> tuple[PlanningProblem, Trajectory]:
        part = setting.mover(request.frame)
        await setting.read()
        problem = await setting.problem(request, part)
        if not any(solid.owner == part.name for solid in problem.solids):
            self.log.warning("the kinematics have no shapes, so nothing is known about collisions", component=part.name)
        return problem, await self.planner(problem)

    async def get_pose(
        self,
        component_name_deprecated: ResourceName | None = None,
        destination_frame: str = "",
        supplemental_transforms: Sequence[SuppliedFrame] = (),
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> PoseInFrame:
        """Return the pose of a component in a frame (default `world`)."""
        check_transforms(len(supplemental_transforms))
        frames = frames_with(frames_of_document(self.document()), supplemental_transforms)
        name = component_of(component_name, component_name_deprecated)
        check_named(name)
        frame = frames.frame_of(name)
        destination = destination_frame or WORLD
        setting, moved = Setting(frames, self.others), dict[str, Pose]()

        async def read(part: FramePart) -> None:
            async with setting.door(part).use() as driver:
                moved[part.name] = await pose_of(driver)

        await gather(*(partial(read, part) for part in frames.moving(frame, destination)))
        return frames.transform(PoseInFrame(frame), destination, moved)

    async def stop_plan(
        self,
        component_name_deprecated: ResourceName | None = None,
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> None:
        """Stop the motion of a component. NOT_FOUND if there is none."""
        name = component_of(component_name, component_name_deprecated)
        if not await self.executions.stop(name):
            raise MachineError(
                f"no motion of {name!r} is in progress",
                kind=ErrorKind.NOT_FOUND,
                remedy="list them with ListPlanStatuses",
            )

    async def list_plan_statuses(
        self, only_active_plans: bool = False, *, extra: Extra = None
    ) -> Sequence[PlanStatusWithID]:
        """Return the states of motions, oldest first."""
        await trio.lowlevel.checkpoint()
        return self.executions.statuses(only_active=only_active_plans)

    async def get_plan(
        self,
        component_name_deprecated: ResourceName | None = None,
        last_plan_only: bool = False,
        execution_id: str | None = None,
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> PlanHistory:
        """Return the plan of a motion, whose steps are poses in the world. There is one plan for each motion."""
        await trio.lowlevel.checkpoint()
        return self.executions.history(component_of(component_name, component_name_deprecated), execution_id or "")

    async def move_on_map(
        self,
        destination: Pose | None = None,
        component_name_deprecated: ResourceName | None = None,
        slam_service_name_deprecated: ResourceName | None = None,
        motion_configuration: MotionConfiguration | None = None,
        obstacles: Sequence[Geometry] = (),
        component_name: str = "",
        slam_service_name: str = "",
        *,
        extra: Extra = None,
    ) -> str:
        """Raise Unsupported: there are no maps."""
        raise Unsupported(
            f"{self.name} cannot drive on a map: this machine has no SLAM service",
            remedy="drive the base with its own calls, such as MoveStraight and Spin",
        )

    async def move_on_globe(
        self,
        destination: GeoPoint | None = None,
        heading: float | None = None,
        component_name_deprecated: ResourceName | None = None,
        movement_sensor_name_deprecated: ResourceName | None = None,
        obstacles: Sequence[GeoGeometry] = (),
        motion_configuration: MotionConfiguration | None = None,
        bounding_regions: Sequence[GeoGeometry] = (),
        component_name: str = "",
        movement_sensor_name: str = "",
        *,
        extra: Extra = None,
    ) -> str:
        """Raise Unsupported: bases are not driven by their position."""
        raise Unsupported(
            f"{self.name} cannot drive a base to a position: not built",
            remedy="drive the base with its own calls, such as MoveStraight and Spin",
        )

    def temp_stream_arm_joint_positions(
        self,
        targets: AsyncIterator[StreamTargets],
        component_name: str = "",
        options: StreamOptions | None = None,
        *,
        extra: Extra = None,
    ) -> AsyncGenerator[int, None]:
        """Raise Unsupported: the arm itself has such a stream."""
        raise Unsupported(
            f"{self.name} has no stream of joint positions",
            remedy="use MoveThroughJointPositionsStreamed of the arm",
        )

    async def stop(self, *, extra: Extra = None) -> None:
        """Stop all motions."""
        await self.executions.stop()

    async def is_moving(self) -> bool:
        """Return whether a motion is planned or executed."""
        await trio.lowlevel.checkpoint()
        return self.executions.moving

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Plan without moving: `{"plan": {...}}` with the fields of Move.

        Returns joint positions (degrees, mm), the earliest time of each (s), poses in the world, the method, and the
        smallest distance of two shapes on the way (mm).
        """
        if set(command) != {PLAN}:
            raise Unsupported(f"{self.name} has the command {PLAN!r}", remedy='send {"plan": {"component_name": ...}}')
        try:
            call = msgspec.convert(command[PLAN], PlanCommand)
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


class PlanCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of Move in a command."""

    component_name: str
    destination: PoseInFrame
    world_state: WorldState | None = None
    constraints: MotionConstraints | None = None
    extra: dict[str, Any] | None = None

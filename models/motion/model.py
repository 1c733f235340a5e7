"""The motion service `builtin`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

import trio

from engine import (
    Actuator,
    Attributes,
    Extra,
    GeoGeometry,
    Motion,
    MotionConfiguration,
    MotionConstraints,
    PlanHistory,
    PlanStatusWithID,
    Started,
    StreamOptions,
    StreamTargets,
    Unsupported,
    WorldState,
    component_of,
    model,
)
from models.motion.attributes import MotionConfig
from schema import API, ErrorKind, Geometry, GeoPoint, MachineError, Pose, PoseInFrame, ResourceName
from support import run_once

if TYPE_CHECKING:
    from engine.geometry import SuppliedFrame
    from models.motion.motions import Motions

PLAN: Final = "plan"
"""Command that plans a motion and does not execute it."""


@model("rdk:builtin:builtin")
class BuiltinMotion(Actuator, Motion):
    """Plans motions in a separate process, and moves the arm or gantry that a frame is attached to.

    A newer motion of the same arm replaces the older one. Motions of different arms run at the same time; each sees
    the others where they are when it is planned.
    """

    Config: ClassVar[type[Attributes]] = MotionConfig

    async def run(self, *, task_status: Started) -> None:
        """Accept motions until cancelled."""
        self._loading = trio.Lock()
        self.motions: Motions | None = None  # until the first is requested
        async with trio.open_nursery() as self._drives:
            task_status.started()
            await trio.sleep_forever()

    async def _motions(self) -> Motions:
        async with self._loading:
            if self.motions is None:
                module = await run_once("import of the planner", partial(import_module, "models.motion.motions"))
                loaded: Motions = module.Motions(self)
                self.motions = loaded
            return self.motions

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
        await (await self._motions()).move(name, destination, world_state, constraints, extra)
        return True

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
        name = component_of(component_name, component_name_deprecated)
        return await (await self._motions()).pose(name, destination_frame, supplemental_transforms)

    async def stop_plan(
        self,
        component_name_deprecated: ResourceName | None = None,
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> None:
        """Stop the motion of a component. NOT_FOUND if there is none."""
        name = component_of(component_name, component_name_deprecated)
        await trio.lowlevel.checkpoint()
        if self.motions is None or not await self.motions.executions.stop(name):
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
        return [] if self.motions is None else self.motions.executions.statuses(only_active=only_active_plans)

    async def get_plan(
        self,
        component_name_deprecated: ResourceName | None = None,
        last_plan_only: bool = False,
        execution_id: str | None = None,
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> PlanHistory:
        """Return the plans of a motion. Steps are poses in the world; of a drive, in mm east and north of its start.

        Only a base that is driven has several: it plans again when it gets off its plan.
        """
        motions = await self._motions()
        name = component_of(component_name, component_name_deprecated)
        return motions.executions.history(name, execution_id or "", last_only=last_plan_only)

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
        """Raise Unsupported: drives on maps are not built. PRECONDITION without the SLAM service."""
        await trio.lowlevel.checkpoint()
        name = component_of(slam_service_name, slam_service_name_deprecated)
        if not any(name in (each.short, str(each)) for each in self.others(API("rdk", "service", "slam"))):
            raise MachineError(
                f"{self.name} cannot drive on a map: there is no SLAM service {name[:60]!r} on this machine",
                kind=ErrorKind.PRECONDITION,
                remedy="add a module with one, or drive by GPS with MoveOnGlobe",
            )
        raise Unsupported(
            f"{self.name} cannot drive on a map: not built",
            remedy="drive by GPS with MoveOnGlobe, or with MoveStraight and Spin of the base",
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
        """Plan a way around the obstacles within the bounding regions, and begin to drive; return the execution's id.

        The drive continues when the caller leaves: end it with `stop_plan`. The base stops without a position.
        """
        motions = await self._motions()
        request = motions.drive_request(
            component_of(component_name, component_name_deprecated),
            component_of(movement_sensor_name, movement_sensor_name_deprecated),
            destination,
            heading,
            obstacles,
            bounding_regions,
            motion_configuration,
        )
        execution_id: str = await self._drives.start(motions.drive, request)
        return execution_id

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
        await trio.lowlevel.checkpoint()
        if self.motions is not None:
            await self.motions.executions.stop()

    async def is_moving(self) -> bool:
        """Return whether a motion is planned or executed."""
        await trio.lowlevel.checkpoint()
        return self.motions is not None and self.motions.executions.moving

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Plan without moving: `{"plan": {...}}` with the fields of Move.

        Returns joint positions (degrees, mm), the earliest time of each (s), poses in the world, the method, and the
        smallest distance of two shapes on the way (mm).
        """
        if set(command) != {PLAN}:
            raise Unsupported(f"{self.name} has the command {PLAN!r}", remedy='send {"plan": {"component_name": ...}}')
        return await (await self._motions()).plan(command[PLAN])

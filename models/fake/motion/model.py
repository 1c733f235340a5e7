"""A simulated motion service, which moves nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

from engine import (
    ComponentState,
    Context,
    Extra,
    GeoGeometry,
    Motion,
    MotionConfiguration,
    MotionConstraints,
    PlanHistory,
    PlanStatusWithID,
    PlanStep,
    StreamOptions,
    StreamTargets,
    Unsupported,
    WorldState,
    component_of,
    model,
)
from engine.geometry import SuppliedFrame
from models.fake.common.simulated import SimulatedResource
from models.motion.executions import Executions
from schema import WORLD, ErrorKind, Geometry, GeoPoint, MachineError, Pose, PoseInFrame, ResourceName

KEPT: Final = 100  # poses


@model("rdk:builtin:fake")
class FakeMotion(SimulatedResource, Motion):
    """Every motion succeeds at once; the pose of a component is its last destination."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._executions = Executions()
        self._poses: deque[tuple[str, PoseInFrame]] = deque(maxlen=KEPT)

    async def _move(self, name: str, pose: Pose) -> str:
        await self.access()
        if not name:
            raise MachineError("no component is named", kind=ErrorKind.INVALID, remedy="set component_name")
        with self._executions.running(name, name) as execution:
            execution.steps = [PlanStep({name: ComponentState(pose)})]
        return execution.id

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
        """Remember the destination as the pose of the component."""
        name, pose = component_of(component_name, component_name_deprecated), destination or PoseInFrame()
        await self._move(name, pose.pose)
        self._poses.append((name, pose))
        return True

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
        """Return the id of an execution that has succeeded."""
        return await self._move(component_of(component_name, component_name_deprecated), destination or Pose())

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
        """Return the id of an execution that has succeeded."""
        return await self._move(component_of(component_name, component_name_deprecated), Pose())

    async def get_pose(
        self,
        component_name_deprecated: ResourceName | None = None,
        destination_frame: str = "",
        supplemental_transforms: Sequence[SuppliedFrame] = (),
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> PoseInFrame:
        """Return the last destination of a component, in any frame; at first the origin."""
        await self.access()
        name = component_of(component_name, component_name_deprecated)
        pose = next((pose for moved, pose in reversed(self._poses) if moved == name), PoseInFrame())
        return replace(pose, reference_frame=destination_frame or WORLD)

    async def stop_plan(
        self,
        component_name_deprecated: ResourceName | None = None,
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> None:
        """Do nothing: no motion lasts."""
        await self.access()

    async def list_plan_statuses(
        self, only_active_plans: bool = False, *, extra: Extra = None
    ) -> Sequence[PlanStatusWithID]:
        """Return the motions of the last 24 hours, all of which have succeeded."""
        await self.access()
        return self._executions.statuses(only_active=only_active_plans)

    async def get_plan(
        self,
        component_name_deprecated: ResourceName | None = None,
        last_plan_only: bool = False,
        execution_id: str | None = None,
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> PlanHistory:
        """Return the plan of a motion: its destination. NOT_FOUND if there is none."""
        await self.access()
        return self._executions.history(component_of(component_name, component_name_deprecated), execution_id or "")

    def temp_stream_arm_joint_positions(
        self,
        targets: AsyncIterator[StreamTargets],
        component_name: str = "",
        options: StreamOptions | None = None,
        *,
        extra: Extra = None,
    ) -> AsyncGenerator[int, None]:
        """Raise Unsupported."""
        raise Unsupported(f"{self.name} has no stream of joint positions", remedy="use the arm itself")

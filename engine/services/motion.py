"""Motion service: moves components to places, around obstacles."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any, ClassVar

from engine.components.motion.arm import MoveOptions
from engine.geometry.supplied import GeometriesInFrame, SuppliedFrame
from engine.resource import Extra, Service
from schema import API, Geometry, GeoPoint, Pose, PoseInFrame, ResourceName


@dataclass(frozen=True, slots=True)
class WorldState:
    """Obstacles, and frames that the machine does not have, such as that of an object in a gripper."""

    obstacles: Sequence[GeometriesInFrame] = ()
    transforms: Sequence[SuppliedFrame] = ()


@dataclass(frozen=True, slots=True)
class GeoGeometry:
    """Shapes at a point on the globe."""

    location: GeoPoint = field(default_factory=GeoPoint)
    geometries: Sequence[Geometry] = ()


@dataclass(frozen=True, slots=True)
class LinearConstraint:
    """Move on the straight line, with these tolerances; None and 0 mean those of the service."""

    line_tolerance_mm: float | None = None
    orientation_tolerance_degs: float | None = None


@dataclass(frozen=True, slots=True)
class PseudolinearConstraint:
    """The same with tolerances as multiples of the length of the way, and of its rotation."""

    line_tolerance_factor: float | None = None
    orientation_tolerance_factor: float | None = None


@dataclass(frozen=True, slots=True)
class OrientationConstraint:
    """Keep to the direct rotation; `ignore_theta` compares only the direction of the z axis."""

    orientation_tolerance_degs: float | None = None
    ignore_theta: bool | None = None


@dataclass(frozen=True, slots=True)
class AllowedFrameCollisions:
    """Two frames, components or shapes that may touch."""

    frame1: str = ""
    frame2: str = ""


@dataclass(frozen=True, slots=True)
class CollisionSpecification:
    """What may touch."""

    allows: Sequence[AllowedFrameCollisions] = ()


@dataclass(frozen=True, slots=True)
class MotionConstraints:
    """What must hold during a motion."""

    linear_constraint: Sequence[LinearConstraint] = ()
    orientation_constraint: Sequence[OrientationConstraint] = ()
    collision_specification: Sequence[CollisionSpecification] = ()
    pseudolinear_constraint: Sequence[PseudolinearConstraint] = ()


@dataclass(frozen=True, slots=True)
class ObstacleDetector:
    """A vision service that detects obstacles, and its camera."""

    vision_service_deprecated: ResourceName | None = None
    camera_deprecated: ResourceName | None = None
    vision_service: str = ""
    camera: str = ""


@dataclass(frozen=True, slots=True)
class MotionConfiguration:
    """How a base is driven: detectors, frequencies (Hz), deviation (m) after which it plans again, and speeds."""

    obstacle_detectors: Sequence[ObstacleDetector] = ()
    position_polling_frequency_hz: float | None = None
    obstacle_polling_frequency_hz: float | None = None
    plan_deviation_m: float | None = None
    linear_m_per_sec: float | None = None
    angular_degs_per_sec: float | None = None


class PlanState(IntEnum):
    """State of a plan; the numbers are those of the API."""

    UNSPECIFIED = 0
    IN_PROGRESS = 1
    STOPPED = 2
    SUCCEEDED = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """A state of a plan, since when, and why."""

    state: PlanState = PlanState.UNSPECIFIED
    timestamp: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PlanStatusWithID:
    """The state of the plan `plan_id`, which belongs to the call `execution_id`."""

    plan_id: str = ""
    component_name_deprecated: ResourceName | None = None
    execution_id: str = ""
    status: PlanStatus | None = None
    component_name: str = ""


@dataclass(frozen=True, slots=True)
class ComponentState:
    """The pose of a component in the world."""

    pose: Pose | None = None


@dataclass(frozen=True, slots=True)
class PlanStep:
    """The states of components at a step, by name."""

    step: Mapping[str, ComponentState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MotionPlan:
    """The steps of a plan."""

    id: str = ""
    component_name_deprecated: ResourceName | None = None
    execution_id: str = ""
    steps: Sequence[PlanStep] = ()
    component_name: str = ""


@dataclass(frozen=True, slots=True)
class PlanWithStatus:
    """A plan, its state, and the states before it, oldest first."""

    plan: MotionPlan | None = None
    status: PlanStatus | None = None
    status_history: Sequence[PlanStatus] = ()


@dataclass(frozen=True, slots=True)
class PlanHistory:
    """The newest plan of a call, and those before it."""

    current_plan_with_status: PlanWithStatus | None = None
    replan_history: Sequence[PlanWithStatus] = ()


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options of a stream of joint positions."""

    arm_side_target_runway_ms: int = 0
    send_to_arm_interval_ms: int = 0
    diagnostics_window_secs: int = 0
    move_options: MoveOptions | None = None


@dataclass(frozen=True, slots=True)
class StreamTargets:
    """Joint positions to pass through."""

    positions: Sequence[Sequence[float]] = ()


class Motion(Service):
    """A service that plans motions and executes them. `component_name_deprecated` is used if there is no other name."""

    API: ClassVar[API] = API("rdk", "service", "motion")

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
        """Move a component or a frame to a pose. Returns True on arrival; cancel to stop.

        Raises MachineError, which names what is in the way: the shapes that touch, or the joint and its limit.
        """
        raise NotImplementedError

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
        """Begin to drive a base to a pose on a map; return the id of the execution."""
        raise NotImplementedError

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
        """Begin to drive a base to a point on the globe; return the id of the execution."""
        raise NotImplementedError

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
        raise NotImplementedError

    async def stop_plan(
        self,
        component_name_deprecated: ResourceName | None = None,
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> None:
        """Stop the execution in progress of a component. NOT_FOUND if there is none."""
        raise NotImplementedError

    async def list_plan_statuses(
        self, only_active_plans: bool = False, *, extra: Extra = None
    ) -> Sequence[PlanStatusWithID]:
        """Return the states of the plans that are in progress, or were in the last 24 hours; oldest first."""
        raise NotImplementedError

    async def get_plan(
        self,
        component_name_deprecated: ResourceName | None = None,
        last_plan_only: bool = False,
        execution_id: str | None = None,
        component_name: str = "",
        *,
        extra: Extra = None,
    ) -> PlanHistory:
        """Return the plans of an execution, by default of the component's newest. NOT_FOUND if there is none."""
        raise NotImplementedError

    def temp_stream_arm_joint_positions(
        self,
        targets: AsyncIterator[StreamTargets],
        component_name: str = "",
        options: StreamOptions | None = None,
        *,
        extra: Extra = None,
    ) -> AsyncGenerator[int, None]:
        """Move an arm through joint positions as they arrive, and yield the milliseconds that it has in stock."""
        raise NotImplementedError


def component_of(name: str, deprecated: ResourceName | Any | None) -> str:
    """Return the name of the component of a request, which older clients send in the deprecated field."""
    return name or (deprecated.short if isinstance(deprecated, ResourceName) else "")

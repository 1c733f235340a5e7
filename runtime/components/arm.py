"""Arm: joints in a row that carry a tool to a pose."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from runtime.components.kinematics import Kinematics, Mesh
from runtime.resource import Actuator, Component, Extra
from schema.geometry import Pose
from schema.names import API


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """Ceilings of a motion, all kept at every point; None and empty mean the arm's own limits.

    The per-joint limits (degrees per second, degrees per second squared, base first) go before the common ones;
    `max_tcp_speed` is in metres per second.
    """

    max_vel_degs_per_sec: float | None = None
    max_acc_degs_per_sec2: float | None = None
    max_vel_degs_per_sec_joints: Sequence[float] = ()
    max_acc_degs_per_sec2_joints: Sequence[float] = ()
    max_tcp_speed: float | None = None


@dataclass(frozen=True, slots=True)
class KinematicConstraints:
    """Joint velocities (degrees/s or mm/s) and perhaps accelerations (per s squared) at a waypoint, base first."""

    velocities: Sequence[float]
    accelerations: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class TrajectoryPoint:
    """Joint positions (degrees or mm, base first) to reach `time` after the start of the motion."""

    time: timedelta
    positions: Sequence[float]
    constraints: KinematicConstraints | None = None


@dataclass(frozen=True, slots=True)
class BatchAck:
    """A batch was handed to the arm; what `extra` means is the driver's."""

    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ArmProperties:
    """Whether the arm can be led by hand, and whether it accepts poses (`move_to_position`)."""

    support_manual_mode: bool
    support_cartesian_commands: bool


class Arm(Actuator, Component):
    """A jointed arm. Joint positions are degrees for turning and mm for sliding joints, base first."""

    API: ClassVar[API] = API("rdk", "component", "arm")

    async def get_end_position(self, *, extra: Extra = None) -> Pose:
        """Pose of the end effector in the arm's own frame (mm, degrees)."""
        raise NotImplementedError

    async def move_to_position(self, to: Pose, *, extra: Extra = None) -> None:
        """Move the end effector to a pose in the arm's own frame (mm, degrees), until there; cancelling stops it."""
        raise NotImplementedError

    async def get_joint_positions(self, *, extra: Extra = None) -> Sequence[float]:
        """Joint positions now (degrees or mm, base first)."""
        raise NotImplementedError

    async def move_to_joint_positions(self, positions: Sequence[float], *, extra: Extra = None) -> None:
        """Move every joint to its position (degrees or mm, base first). Returns when there; cancelling stops it."""
        raise NotImplementedError

    async def move_through_joint_positions(
        self, positions: Sequence[Sequence[float]], options: MoveOptions | None = None, *, extra: Extra = None
    ) -> None:
        """Move through the waypoints in order within `options`. Returns at the last; cancelling stops it."""
        raise NotImplementedError

    def move_through_joint_positions_streamed(
        self, batches: AsyncIterator[Sequence[TrajectoryPoint]], *, extra: Extra = None
    ) -> AsyncGenerator[BatchAck, None]:
        """Follow waypoints while they still arrive, yielding one BatchAck for each accepted batch.

        The first point has time zero, later times increase strictly. Ends when the last point is reached; closing the
        generator stops the arm.
        """
        raise NotImplementedError

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        """Links, joints and limits; meshes carry only their paths unless asked for."""
        raise NotImplementedError

    async def get_3d_models(self, *, extra: Extra = None) -> Mapping[str, Mesh]:
        """Surfaces to draw the arm, by link name."""
        raise NotImplementedError

    async def set_manual_mode(self, manual_mode: bool, enabled_for: int = 0, *, extra: Extra = None) -> None:
        """Let a hand lead the arm, or end that; after `enabled_for` seconds it ends by itself, 0 means never."""
        raise NotImplementedError

    async def get_manual_mode(self, *, extra: Extra = None) -> bool:
        """True while a hand may lead the arm."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> ArmProperties:
        """What this arm can do."""
        raise NotImplementedError

"""Arm: a chain of joints that moves a tool to a pose."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from engine.components.motion.kinematics import Kinematics, Mesh
from engine.resource import Actuator, Component, Extra
from schema import API, Pose


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """Limits of a motion, all enforced at every point; None and empty mean the arm's own limits.

    The per-joint limits (degrees per second, degrees per second squared, base first) take precedence over the common
    ones; `max_tcp_speed` is in metres per second.
    """

    max_vel_degs_per_sec: float | None = None
    max_acc_degs_per_sec2: float | None = None
    max_vel_degs_per_sec_joints: Sequence[float] = ()
    max_acc_degs_per_sec2_joints: Sequence[float] = ()
    max_tcp_speed: float | None = None


@dataclass(frozen=True, slots=True)
class KinematicConstraints:
    """Joint velocities (degrees/s or mm/s) and optional accelerations (per s squared) at a waypoint, base first."""

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
    """Confirmation that the arm has accepted a batch; the driver defines `extra`."""

    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ArmProperties:
    """Whether the arm can be guided by hand, and whether it accepts poses (`move_to_position`)."""

    support_manual_mode: bool
    support_cartesian_commands: bool


class Arm(Actuator, Component):
    """A jointed arm. Joint positions are in degrees for rotating joints and in mm for sliding joints, base first."""

    API: ClassVar[API] = API("rdk", "component", "arm")

    async def get_end_position(self, *, extra: Extra = None) -> Pose:
        """Return the pose of the end effector in the arm's own frame (mm, degrees)."""
        raise NotImplementedError

    async def move_to_position(self, to: Pose, *, extra: Extra = None) -> None:
        """Move the end effector to a pose in the arm's frame (mm, degrees). Returns on arrival; cancel to stop."""
        raise NotImplementedError

    async def get_joint_positions(self, *, extra: Extra = None) -> Sequence[float]:
        """Return the current joint positions (degrees or mm, base first)."""
        raise NotImplementedError

    async def move_to_joint_positions(self, positions: Sequence[float], *, extra: Extra = None) -> None:
        """Move each joint to its position (degrees or mm, base first). Returns on arrival; cancel to stop."""
        raise NotImplementedError

    async def move_through_joint_positions(
        self, positions: Sequence[Sequence[float]], options: MoveOptions | None = None, *, extra: Extra = None
    ) -> None:
        """Move through the waypoints in order, within `options`. Returns at the last one; cancel to stop."""
        raise NotImplementedError

    def move_through_joint_positions_streamed(
        self, batches: AsyncIterator[Sequence[TrajectoryPoint]], *, extra: Extra = None
    ) -> AsyncGenerator[BatchAck, None]:
        """Follow waypoints as they arrive, and yield a BatchAck for each accepted batch.

        The first point has time zero; later times increase strictly. Ends when the last point is reached. Closing the
        generator stops the arm.
        """
        raise NotImplementedError

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        """Return links, joints and limits; meshes carry only their paths unless requested."""
        raise NotImplementedError

    async def get_3d_models(self, *, extra: Extra = None) -> Mapping[str, Mesh]:
        """Return the meshes that draw the arm, by link name."""
        raise NotImplementedError

    async def set_manual_mode(self, manual_mode: bool, enabled_for: int = 0, *, extra: Extra = None) -> None:
        """Allow or forbid guiding the arm by hand; it is forbidden again after `enabled_for` seconds, or never if 0."""
        raise NotImplementedError

    async def get_manual_mode(self, *, extra: Extra = None) -> bool:
        """Return True while the arm can be guided by hand."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> ArmProperties:
        """Return what this arm can do."""
        raise NotImplementedError

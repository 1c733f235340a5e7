"""Kinematics of arms, gantries and grippers: their links and joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from schema import Geometry, Orientation, Vector3


class KinematicsFormat(IntEnum):
    """Format of a kinematics file."""

    UNSPECIFIED = 0
    SVA = 1  # spatial vector algebra, as JSON
    URDF = 2


class JointType(IntEnum):
    """Type of a joint."""

    UNSPECIFIED = 0
    REVOLUTE = 1  # rotates between limits
    PRISMATIC = 2  # slides between limits
    CONTINUOUS = 3  # rotates without limits


@dataclass(frozen=True, slots=True)
class Mesh:
    """A mesh file; `content_type` names its format (`ply`, `stl`)."""

    content_type: str = ""
    mesh: bytes = b""
    original_file_source_path_diagnostic: str | None = None


@dataclass(frozen=True, slots=True)
class Quaternion:
    """A rotation as a unit quaternion."""

    w: float = 1.0
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


@dataclass(frozen=True, slots=True)
class EulerAngles:
    """A rotation as roll, pitch and yaw (radians)."""

    roll: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0


@dataclass(frozen=True, slots=True)
class AxisAngles:
    """A rotation of `theta` (radians) about the axis (rx, ry, rz)."""

    rx: float = 0.0
    ry: float = 0.0
    rz: float = 1.0
    theta: float = 0.0


@dataclass(frozen=True, slots=True)
class LinkPose:
    """Pose of a link relative to its parent: a translation (mm) and at most one of the rotations."""

    translation: Vector3 = field(default_factory=Vector3)
    quaternion: Quaternion | None = None
    orientation_vector: Orientation | None = None
    euler_angles: EulerAngles | None = None
    axis_angles: AxisAngles | None = None


@dataclass(frozen=True, slots=True)
class JointLimits:
    """Limits of a joint, in degrees (rotating) or mm (sliding) and seconds; None means unlimited."""

    min: float | None = None
    max: float | None = None
    max_velocity: float | None = None
    max_acceleration: float | None = None


@dataclass(frozen=True, slots=True)
class MimicJoint:
    """A rule by which a joint follows another: the position of `joint` times `multiplier` plus `offset`."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class KinematicLink:
    """A rigid part, and shapes for collision checks and for display."""

    id: str
    parent: str
    pose: LinkPose = field(default_factory=LinkPose)
    collision: Sequence[Geometry] = ()
    visual: Sequence[Geometry] = ()


@dataclass(frozen=True, slots=True)
class KinematicJoint:
    """A joint, which moves along or about `axis`."""

    id: str
    parent: str
    type: JointType
    axis: Vector3
    limits: JointLimits | None = None
    mimic: MimicJoint | None = None
    geometry: Geometry | None = None


@dataclass(frozen=True, slots=True)
class KinematicProperties:
    """Frequency of the controller (Hz) and maximum speed of the tool (mm/s); None if unknown."""

    operating_freq_hz: float | None = None
    max_linear_tcp_speed_mm_per_sec: float | None = None


@dataclass(frozen=True, slots=True)
class KinematicModel:
    """A tree of links and joints, and the names of its output frames."""

    name: str
    links: Sequence[KinematicLink] = ()
    joints: Sequence[KinematicJoint] = ()
    output_frames: Sequence[str] = ()
    properties: KinematicProperties | None = None


@dataclass(frozen=True, slots=True)
class Kinematics:
    """A kinematics file, the meshes it refers to by path, and its content as a structure if the driver provides it."""

    format: KinematicsFormat = KinematicsFormat.UNSPECIFIED
    kinematics_data: bytes = b""
    meshes_by_urdf_filepath: Mapping[str, Mesh] = field(default_factory=dict)
    model: KinematicModel | None = None

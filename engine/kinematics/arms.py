"""Kinematics of common arms by name, from the figures that their vendors publish. Pure.

Sources, read in November 2026. Only measurements were taken over, no code, models or drawings.

* `ur5e`, `ur20`: Denavit-Hartenberg parameters from the support article "DH Parameters for calculations of kinematics
  and dynamics" of Universal Robots (universal-robots.com, application-installation). Limits and speeds of joints from
  config/*/joint_limits.yaml of github.com/UniversalRobots/Universal_Robots_ROS2_Description (BSD-3-Clause), which cites
  the user manuals. The output is the flange, in the frame `base` of the controller.
* `xarm6`, `xarm7`, `lite6`: origins of joints from xarm_description/config/kinematics/default/*.yaml of
  github.com/xArm-Developer/xarm_ros, limits and speeds from xarm_description/urdf/*/*.urdf.xacro of
  github.com/xArm-Developer/xarm_ros2 (UFACTORY; BSD). Angles that are rounded there are multiples
  of 90 degrees here. Licences are those in the file package.xml of these repositories.

The shapes for collisions are no figures of a vendor: they are capsules of this project around the links, with
generous radii. A real arm has cables and covers: keep a margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

from engine.components.motion.kinematics import JointType
from engine.geometry.chain import SIX_AXIS
from engine.geometry.spatial import Transform, Vector, about, add, length, multiply, scale, subtract
from engine.geometry.sva import Chain, Joint, Link
from schema import Capsule, Geometry, Pose, Sphere


class DHRow(NamedTuple):
    """A row of a vendor's table: a and d in mm, alpha in degrees; limits in degrees, speed in degrees per second."""

    a: float
    d: float
    alpha: float
    low: float
    high: float
    speed: float


class Origin(NamedTuple):
    """The origin of a joint in the link before it: mm, and roll, pitch and yaw in degrees; limits are in radians."""

    xyz: Vector
    rpy: Vector
    low: float
    high: float


class Segment(NamedTuple):
    """A capsule from `start` to `end` (mm) in the frame of a joint; joint 0 is the base."""

    joint: int
    start: Vector
    end: Vector
    radius: float


_UR_JOINTS: Final = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
_UR5E: Final = (
    DHRow(0.0, 162.5, 90.0, -360.0, 360.0, 180.0),
    DHRow(-425.0, 0.0, 0.0, -360.0, 360.0, 180.0),
    DHRow(-392.2, 0.0, 0.0, -180.0, 180.0, 180.0),
    DHRow(0.0, 133.3, 90.0, -360.0, 360.0, 180.0),
    DHRow(0.0, 99.7, -90.0, -360.0, 360.0, 180.0),
    DHRow(0.0, 99.6, 0.0, -360.0, 360.0, 180.0),
)
_UR20: Final = (
    DHRow(0.0, 236.3, 90.0, -360.0, 360.0, 120.0),
    DHRow(-862.0, 0.0, 0.0, -360.0, 360.0, 120.0),
    DHRow(-728.7, 0.0, 0.0, -180.0, 180.0, 150.0),
    DHRow(0.0, 201.0, 90.0, -360.0, 360.0, 210.0),
    DHRow(0.0, 159.3, -90.0, -360.0, 360.0, 210.0),
    DHRow(0.0, 154.3, 0.0, -360.0, 360.0, 210.0),
)
_UF_SPEED: Final = math.degrees(3.14)  # of every joint, degrees per second
_TURN: Final = 2 * math.pi
_XARM6: Final = (
    Origin((0, 0, 267), (0, 0, 0), -_TURN, _TURN),
    Origin((0, 0, 0), (-90, 0, 0), -2.059, 2.0944),
    Origin((53.5, -284.5, 0), (0, 0, 0), -3.927, 0.19198),
    Origin((77.5, 342.5, 0), (-90, 0, 0), -_TURN, _TURN),
    Origin((0, 0, 0), (90, 0, 0), -1.69297, math.pi),
    Origin((76, 97, 0), (-90, 0, 0), -_TURN, _TURN),
)
_XARM7: Final = (
    Origin((0, 0, 267), (0, 0, 0), -_TURN, _TURN),
    Origin((0, 0, 0), (-90, 0, 0), -2.059, 2.0944),
    Origin((0, -293, 0), (90, 0, 0), -_TURN, _TURN),
    Origin((52.5, 0, 0), (90, 0, 0), -0.19198, 3.927),
    Origin((77.5, -342.5, 0), (90, 0, 0), -_TURN, _TURN),
    Origin((0, 0, 0), (90, 0, 0), -1.69297, math.pi),
    Origin((76, 97, 0), (-90, 0, 0), -_TURN, _TURN),
)
_LITE6: Final = (
    Origin((0, 0, 243.5), (0, 0, 0), -_TURN, _TURN),
    Origin((0, 0, 0), (90, -90, 180), -2.61799, 2.61799),
    Origin((200.2, 0, 0), (-180, 0, 90), -0.061087, 5.235988),
    Origin((87, -227.61, 0), (90, 0, 0), -_TURN, _TURN),
    Origin((0, 0, 0), (90, 0, 0), -2.1642, 2.1642),
    Origin((0, 62.5, 0), (-90, 0, 0), -_TURN, _TURN),
)

_UR5E_SHAPES: Final = (
    Segment(0, (0, 0, 30), (0, 0, 60), 70),
    Segment(1, (0, 0, 162.5), (0, 0, 162.5), 70),
    Segment(2, (0, 0, 138), (-425, 0, 138), 58),
    Segment(3, (0, 0, 10), (-392.2, 0, 10), 48),
    Segment(4, (0, 0, 20), (0, 0, 133.3), 42),
    Segment(5, (0, 0, 0), (0, 0, 99.7), 42),
    Segment(5, (0, 0, 99.7), (0, 57, 99.7), 42),
)
_UR20_SHAPES: Final = (
    Segment(0, (0, 0, 60), (0, 0, 90), 110),
    Segment(1, (0, 0, 236.3), (0, 0, 236.3), 115),
    Segment(2, (0, 0, 260), (-862, 0, 260), 90),
    Segment(3, (0, 0, 43), (-728.7, 0, 43), 75),
    Segment(4, (0, 0, 50), (0, 0, 201), 62),
    Segment(5, (0, 0, 0), (0, 0, 159.3), 62),
    Segment(5, (0, 0, 159.3), (0, 92, 159.3), 62),
)
_XARM6_SHAPES: Final = (
    Segment(0, (0, 0, 60), (0, 0, 140), 65),
    Segment(1, (0, 0, -20), (0, 0, 0), 68),
    Segment(2, (0, 0, 0), (53.5, -284.5, 0), 58),
    Segment(3, (0, 0, 0), (77.5, 60, 0), 55),
    Segment(3, (77.5, 60, 0), (77.5, 220, 0), 40),
    Segment(4, (0, 0, -110), (0, 0, 0), 46),
    Segment(5, (0, 0, 0), (76, 0, 0), 45),
    Segment(5, (76, 0, 0), (76, 57, 0), 33),
)
_XARM7_SHAPES: Final = (
    Segment(0, (0, 0, 60), (0, 0, 140), 65),
    Segment(1, (0, 0, -20), (0, 0, 0), 68),
    Segment(2, (0, 0, 0), (0, -160, 0), 58),
    Segment(3, (0, 0, -100), (0, 0, 0), 55),
    Segment(3, (0, 0, 0), (52.5, 0, 0), 52),
    Segment(4, (0, 0, 0), (77.5, -60, 0), 52),
    Segment(4, (77.5, -60, 0), (77.5, -220, 0), 40),
    Segment(5, (0, 0, -110), (0, 0, 0), 46),
    Segment(6, (0, 0, 0), (76, 0, 0), 45),
    Segment(6, (76, 0, 0), (76, 57, 0), 33),
)
_LITE6_SHAPES: Final = (
    Segment(0, (0, 0, 50), (0, 0, 105), 55),
    Segment(1, (0, 0, -20), (0, 0, 0), 58),
    Segment(2, (0, 0, 40), (200.2, 0, 40), 46),
    Segment(3, (0, 0, 0), (87, 0, 0), 48),
    Segment(3, (87, 0, 0), (87, -110, 0), 44),
    Segment(4, (0, 0, -80), (0, 0, -10), 42),
    Segment(5, (0, 0, 0), (0, 27, 0), 36),
)

_X: Final = (1.0, 0.0, 0.0)
_Y: Final = (0.0, 1.0, 0.0)
_Z: Final = (0.0, 0.0, 1.0)


def _by_parameters(name: str, joints: Sequence[str], rows: Sequence[DHRow], shapes: Sequence[Segment]) -> Chain:
    parts: list[Link | Joint] = [Link("base", Transform(), _shapes("base", 0, shapes))]
    for number, (joint, row) in enumerate(zip(joints, rows, strict=True), 1):
        parts.append(Joint(joint, JointType.REVOLUTE, _Z, row.low, row.high, row.speed))
        link, turned = f"{joint}_link", about(_X, math.radians(row.alpha))
        parts.append(Link(link, Transform(turned, (row.a, 0.0, row.d)), _shapes(link, number, shapes)))
    return Chain(name, tuple(parts))


def _by_origins(name: str, origins: Sequence[Origin], shapes: Sequence[Segment]) -> Chain:
    parts: list[Link | Joint] = []
    for number, origin in enumerate(origins):
        link = f"link{number}" if number else "base"
        roll, pitch, yaw = map(math.radians, origin.rpy)
        turned = multiply(multiply(about(_Z, yaw), about(_Y, pitch)), about(_X, roll))
        parts.append(Link(link, Transform(turned, origin.xyz), _shapes(link, number, shapes)))
        limits = (math.degrees(origin.low), math.degrees(origin.high))
        parts.append(Joint(f"joint{number + 1}", JointType.REVOLUTE, _Z, *limits, _UF_SPEED))
    parts.append(Link("flange", Transform()))
    return Chain(name, tuple(parts))


def _shapes(link: str, joint: int, segments: Sequence[Segment]) -> tuple[Geometry, ...]:
    return tuple(capsule(segment, link) for segment in segments if segment.joint == joint)


def capsule(segment: Segment, label: str) -> Geometry:
    """Return the capsule around a segment, or the sphere if it has no length."""
    way = subtract(segment.end, segment.start)
    middle = scale(add(segment.start, segment.end), 0.5)
    if not any(way):
        return Geometry(Pose(*middle), sphere=Sphere(segment.radius), label=label)
    x, y, z = scale(way, 1 / length(way))
    size = length(way) + 2 * segment.radius
    return Geometry(Pose(*middle, x, y, z), capsule=Capsule(segment.radius, size), label=label)


_BUILDERS: Final[Mapping[str, Callable[[], Chain]]] = MappingProxyType(
    {
        SIX_AXIS.name: lambda: SIX_AXIS,
        "lite6": lambda: _by_origins("lite6", _LITE6, _LITE6_SHAPES),
        "ur20": lambda: _by_parameters("ur20", _UR_JOINTS, _UR20, _UR20_SHAPES),
        "ur5e": lambda: _by_parameters("ur5e", _UR_JOINTS, _UR5E, _UR5E_SHAPES),
        "xarm6": lambda: _by_origins("xarm6", _XARM6, _XARM6_SHAPES),
        "xarm7": lambda: _by_origins("xarm7", _XARM7, _XARM7_SHAPES),
    }
)

NAMES: Final = tuple(_BUILDERS)
"""The names of the arms."""


@cache
def named(name: str) -> Chain:
    """Return the chain of an arm in NAMES; KeyError for another name."""
    return _BUILDERS[name]()

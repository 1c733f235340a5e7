"""Positions, directions and shapes as the resource APIs speak of them.

Field names are those of the published protobuf messages, so that one converter serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Vector3:
    """Three numbers along x, y and z; the method that takes one says the unit."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


@dataclass(frozen=True, slots=True)
class Orientation:
    """A direction (o_x, o_y, o_z) and a rotation about it: theta in degrees."""

    o_x: float = 0.0
    o_y: float = 0.0
    o_z: float = 1.0
    theta: float = 0.0


@dataclass(frozen=True, slots=True)
class Pose:
    """Where something is (mm) and how it is turned (direction of its z axis and theta in degrees about it)."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    o_x: float = 0.0
    o_y: float = 0.0
    o_z: float = 1.0
    theta: float = 0.0


@dataclass(frozen=True, slots=True)
class PoseInFrame:
    """A pose and the name of the frame it is measured in."""

    reference_frame: str = "world"
    pose: Pose = field(default_factory=Pose)


@dataclass(frozen=True, slots=True)
class GeoPoint:
    """A place on the globe: latitude and longitude in degrees, north and east positive."""

    latitude: float = 0.0
    longitude: float = 0.0


@dataclass(frozen=True, slots=True)
class Sphere:
    """A ball; radius in mm. A radius of zero means a point."""

    radius_mm: float = 0.0


@dataclass(frozen=True, slots=True)
class RectangularPrism:
    """A box with edges of `dims_mm`."""

    dims_mm: Vector3 = field(default_factory=Vector3)


@dataclass(frozen=True, slots=True)
class Capsule:
    """A cylinder with half balls at its ends; `length_mm` is over all."""

    radius_mm: float = 0.0
    length_mm: float = 0.0


@dataclass(frozen=True, slots=True)
class Geometry:
    """A labelled shape around a pose; exactly one of the shapes is set."""

    center: Pose = field(default_factory=Pose)
    sphere: Sphere | None = None
    box: RectangularPrism | None = None
    capsule: Capsule | None = None
    label: str = ""

"""Positions, directions and shapes of the resource APIs.

Field names are those of the published protobuf messages, so that a generic converter can handle them.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Vector3:
    """Vector with x, y and z; the unit is defined by the method that uses it."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


@dataclass(frozen=True, slots=True)
class Orientation:
    """Direction (o_x, o_y, o_z) and rotation about it, theta, in degrees."""

    o_x: float = 0.0
    o_y: float = 0.0
    o_z: float = 1.0
    theta: float = 0.0


@dataclass(frozen=True, slots=True)
class Pose:
    """Position in mm and orientation: direction of the z axis and rotation about it, theta, in degrees."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    o_x: float = 0.0
    o_y: float = 0.0
    o_z: float = 1.0
    theta: float = 0.0


@dataclass(frozen=True, slots=True)
class PoseInFrame:
    """Pose and the name of its reference frame."""

    reference_frame: str = "world"
    pose: Pose = field(default_factory=Pose)


@dataclass(frozen=True, slots=True)
class GeoPoint:
    """Point on the globe: latitude and longitude in degrees, north and east positive."""

    latitude: float = 0.0
    longitude: float = 0.0


@dataclass(frozen=True, slots=True)
class Sphere:
    """Sphere with a radius in mm. A radius of zero means a point."""

    radius_mm: float = 0.0


@dataclass(frozen=True, slots=True)
class RectangularPrism:
    """Box with edges of `dims_mm`."""

    dims_mm: Vector3 = field(default_factory=Vector3)


@dataclass(frozen=True, slots=True)
class Capsule:
    """Cylinder with hemispherical ends; `length_mm` is the total length."""

    radius_mm: float = 0.0
    length_mm: float = 0.0


@dataclass(frozen=True, slots=True)
class Geometry:
    """Labeled shape centered at a pose; exactly one of the shapes is set."""

    center: Pose = field(default_factory=Pose)
    sphere: Sphere | None = None
    box: RectangularPrism | None = None
    capsule: Capsule | None = None
    label: str = ""

"""Shapes on the ground: convex polygons with a rim. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from models.driving.plane import Point
from schema import ErrorKind, Geometry, MachineError

LARGEST: Final = 20_000.0  # m, of any size of a shape
UPRIGHT: Final = 0.999  # share of the axis of a shape that points up


@dataclass(frozen=True, slots=True)
class Shape:
    """All points within `rim` metres of a convex polygon, of which one or two corners are enough."""

    corners: tuple[Point, ...]  # counterclockwise
    rim: float
    label: str

    def distance(self, point: Point) -> float:
        """Return the distance of a point from the shape; 0 inside."""
        return max(0.0, self._from_polygon(point) - self.rim)

    def _from_polygon(self, point: Point) -> float:
        corners = self.corners
        if len(corners) > 2 and all(side(corners[i - 1], corners[i], point) >= 0 for i in range(len(corners))):
            return 0.0
        return min(_to_segment(corners[i - 1], corners[i], point) for i in range(len(corners)))

    def distance_of_segment(self, start: Point, end: Point) -> float:
        """Return the distance of a straight line from the shape; 0 if they touch."""
        corners = self.corners
        nearest = min(self._from_polygon(start), self._from_polygon(end))
        if not nearest:
            return 0.0
        for i in range(len(corners)):
            first, second = corners[i - 1], corners[i]
            if _cross(start, end, first, second):
                return 0.0
            nearest = min(nearest, _to_segment(start, end, second))
        return max(0.0, nearest - self.rim)

    def around(self, margin: float, directions: int = 12) -> tuple[Point, ...]:
        """Return corners of a polygon around the shape, whose edges keep `margin` metres from it."""
        return self._spread((self.rim + margin) * 1.001 / math.cos(math.pi / directions) + 1e-6, directions)

    def polygon(self, directions: int = 32) -> Shape:
        """Return a polygon without a rim within the shape, which covers nearly all of it."""
        if not self.rim:
            return self
        return Shape(self._spread(self.rim, directions), 0.0, self.label)

    def _spread(self, reach: float, directions: int) -> tuple[Point, ...]:
        offsets = [
            (reach * math.cos(angle), reach * math.sin(angle))
            for angle in (2 * math.pi * number / directions for number in range(directions))
        ]
        return hull([Point(corner.x + x, corner.y + y) for corner in self.corners for x, y in offsets])

    def box(self, margin: float) -> tuple[float, float, float, float]:
        """Return the lowest x and y, and the highest, of the shape with a margin."""
        reach = self.rim + margin
        xs, ys = [corner.x for corner in self.corners], [corner.y for corner in self.corners]
        return min(xs) - reach, min(ys) - reach, max(xs) + reach, max(ys) + reach

    def inside(self, start: Point, end: Point) -> tuple[float, float] | None:
        """Return the part of a straight line inside a `polygon`, as shares of its length; None if it is outside."""
        outline = self.corners
        if len(outline) < 3:
            return None
        low, high = 0.0, 1.0
        for i in range(len(outline)):
            before, after = (side(outline[i - 1], outline[i], point) for point in (start, end))
            if before < 0 and after < 0:
                return None
            if before < 0 or after < 0:
                share = before / (before - after)
                low, high = (max(low, share), high) if before < 0 else (low, min(high, share))
        return (low, high) if low <= high else None


def shape_of(geometry: Geometry, middle: Point, where: str) -> Shape:
    """Return the shape of a geometry in mm whose frame is at `middle`, x to the east and y to the north.

    INVALID if it is not finite, too large, or a box or capsule that leans; `where` names it.
    """
    centre, label = geometry.center, geometry.label[:100]
    box, sphere, capsule = geometry.box, geometry.sphere, geometry.capsule
    sizes: Sequence[float] = ()
    if box is not None:
        sizes = (box.dims_mm.x / 1000, box.dims_mm.y / 1000)
    elif sphere is not None:
        sizes = (sphere.radius_mm / 1000,)
    elif capsule is not None:
        sizes = (capsule.radius_mm / 1000, capsule.length_mm / 1000)
    if not all(math.isfinite(size) and 0 <= size <= LARGEST for size in sizes):
        raise MachineError(
            f"{where}: a size is negative, not finite, or above {LARGEST / 1000:g} km", kind=ErrorKind.INVALID
        )
    numbers = (centre.x, centre.y, centre.o_x, centre.o_y, centre.o_z, centre.theta)
    if not all(map(math.isfinite, numbers)) or max(map(abs, numbers[:2])) > LARGEST * 1000:
        raise MachineError(f"{where}: its centre is not finite, or too far away", kind=ErrorKind.INVALID)
    length = math.sqrt(centre.o_x**2 + centre.o_y**2 + centre.o_z**2)
    upright = centre.o_z >= UPRIGHT * length  # also for a direction of length 0, which means upward
    if not upright and sphere is None:
        raise MachineError(
            f"{where}: the shape does not stand upright", kind=ErrorKind.INVALID, remedy="turn it only about z"
        )
    at = Point(middle.x + centre.x / 1000, middle.y + centre.y / 1000)
    if box is None:
        return Shape((at,), sizes[0] if sizes else 0.0, label)
    half_x, half_y, angle = sizes[0] / 2, sizes[1] / 2, math.radians(centre.theta % 360.0)
    cosine, sine = math.cos(angle), math.sin(angle)
    corners = (
        Point(at.x + x * cosine - y * sine, at.y + x * sine + y * cosine)
        for x, y in ((-half_x, -half_y), (half_x, -half_y), (half_x, half_y), (-half_x, half_y))
    )
    return Shape(tuple(corners), 0.0, label)


def covered(shapes: Sequence[Shape], start: Point, end: Point) -> bool:
    """Return whether every point of a straight line is in at least one of the shapes, which are polygons."""
    parts = sorted(part for shape in shapes if (part := shape.inside(start, end)) is not None)
    reached = 0.0
    for low, high in parts:
        if low > reached + 1e-9:
            return False
        reached = max(reached, high)
    return bool(parts) and parts[0][0] <= 0.0 and reached >= 1.0


def hull(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the convex hull of points, counterclockwise."""
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return tuple(ordered)
    around: list[Point] = []
    for direction in (ordered, ordered[::-1]):
        half: list[Point] = []
        for point in direction:
            while len(half) > 1 and side(half[-2], half[-1], point) <= 0:
                half.pop()
            half.append(point)
        around += half[:-1]
    return tuple(around)


def side(first: Point, second: Point, point: Point) -> float:
    """Return a number above 0 if a point is to the left of the line from `first` to `second`."""
    return (second.x - first.x) * (point.y - first.y) - (second.y - first.y) * (point.x - first.x)


def _cross(start: Point, end: Point, first: Point, second: Point) -> bool:
    return (
        side(start, end, first) * side(start, end, second) < 0
        and side(first, second, start) * side(first, second, end) < 0
    )


def _to_segment(start: Point, end: Point, point: Point) -> float:
    dx, dy = end.x - start.x, end.y - start.y
    squared = dx * dx + dy * dy
    share = 0.0
    if squared:
        share = min(max(((point.x - start.x) * dx + (point.y - start.y) * dy) / squared, 0.0), 1.0)
    return math.hypot(start.x + share * dx - point.x, start.y + share * dy - point.y)

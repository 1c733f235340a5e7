"""Distances of shapes: points, lines and boxes, grown by a radius. Pure.

The difference of two such shapes is a sum of line segments, so the distance is that of the origin from
`c + x1 g1 + ... + xn gn` with all x from -1 to 1. Moving one x after the other to its best place finds the nearest
point, and the plane through that point proves a lower bound, which is what is returned.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple, TypeAlias

from engine.kinematics import Flat, compose
from models.planner.problem import Solid

Point: TypeAlias = tuple[float, float, float]

_ROUNDS: Final = 200
_EXACT: Final = 0.02  # mm between the bound and the distance
_TOUCHES: Final = 1e-6  # mm
_NOTHING: Final = 1e-9  # mm: an edge that is shorter is a point


class Placed(NamedTuple):
    """A shape at its place: its center, half of its edges, its radius, and the radius of a sphere around it."""

    x: float
    y: float
    z: float
    edges: tuple[Point, ...]
    radius: float
    reach: float


def placed(solid: Solid, frame: Flat) -> Placed:
    """Return a shape whose body is at `frame`."""
    m = compose(frame, solid.at)
    edges = tuple(
        (m[i] * half, m[4 + i] * half, m[8 + i] * half) for i, half in enumerate(solid.half) if half > _NOTHING
    )
    return Placed(m[3], m[7], m[11], edges, solid.radius, reach_of(solid))


def reach_of(solid: Solid) -> float:
    """Return the radius of a sphere around a shape."""
    x, y, z = solid.half
    return math.sqrt(x * x + y * y + z * z) + solid.radius


def distance(a: Placed, b: Placed, enough: float = math.inf) -> float:
    """Return a lower bound of the distance, which is exact to some hundredths of a mm; negative if they overlap.

    A bound above `enough` need not be exact.
    """
    cx, cy, cz = a.x - b.x, a.y - b.y, a.z - b.z
    radii = a.radius + b.radius
    apart = math.sqrt(cx * cx + cy * cy + cz * cz) - a.reach - b.reach
    if apart > enough:
        return apart
    edges = a.edges + b.edges
    if not edges:
        return apart
    squares = [x * x + y * y + z * z for x, y, z in edges]
    shares = [0.0] * len(edges)
    rx, ry, rz = cx, cy, cz
    best = -radii
    order = range(len(edges))
    for _ in range(_ROUNDS):
        for i in order:
            gx, gy, gz = edges[i]
            old = shares[i]
            new = old - (gx * rx + gy * ry + gz * rz) / squares[i]
            new = 1.0 if new > 1.0 else -1.0 if new < -1.0 else new
            if new != old:
                change = new - old
                shares[i] = new
                rx, ry, rz = rx + change * gx, ry + change * gy, rz + change * gz
        size = math.sqrt(rx * rx + ry * ry + rz * rz)
        if size < _TOUCHES:
            return -radii
        bound = cx * rx + cy * ry + cz * rz
        for gx, gy, gz in edges:
            bound -= abs(gx * rx + gy * ry + gz * rz)
        bound = bound / size - radii
        best = max(best, bound)
        if size - radii - best < _EXACT or best > enough:
            break
    return best

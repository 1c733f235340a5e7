"""What drives on the globe share: shapes at points of it, the space that a base needs, and access to resources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from engine import Base, GeoGeometry, Resource, ResourceAccess
from models.driving.plane import Plane
from models.driving.shapes import Shape, shape_of
from schema import ErrorKind, MachineError

SPACE: Final = 0.2  # m that a base keeps from obstacles, beyond half of its width
WIDEST: Final = 100.0  # m


async def margin_of(base: Base) -> float:
    """Return how far in m the middle of a base keeps from obstacles."""
    width = (await base.get_properties()).width_meters
    if not math.isfinite(width) or not 0 <= width <= WIDEST:
        raise MachineError(f"{base.name.short} reports a width of {width:g} m", kind=ErrorKind.PRECONDITION)
    return SPACE + width / 2


def shapes_of(plane: Plane, groups: Sequence[GeoGeometry], what: str) -> list[Shape]:
    """Return shapes of the globe in a plane. INVALID for one that does not fit."""
    shapes = []
    for number, group in enumerate(groups):
        where = f"{what}.{number}"
        middle = plane.point(group.location, where)
        for index, geometry in enumerate(group.geometries):
            shape = shape_of(geometry, middle, f"{where}.geometries.{index}")
            shapes.append(shape if shape.label else Shape(shape.corners, shape.rim, f"{what} {number}"))
    return shapes


def find_door(service: Resource, cls: type[Resource], name: str) -> ResourceAccess:
    """Return the access to a resource. NOT_FOUND if none with this name is ready."""
    for full, door in service.others(cls.API).items():
        if name in (full.short, str(full)):
            return door
    raise MachineError(
        f"no {cls.API.subtype} named {name[:60]!r} is ready",
        kind=ErrorKind.NOT_FOUND,
        remedy="its state in the machine's status says why",
    )

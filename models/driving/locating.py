"""Where a base is, as a movement sensor measures it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import trio

from engine import MovementSensor
from models.driving.following import Place
from models.driving.plane import Plane, Point, check_geo
from schema import ErrorKind, GeoPoint, MachineError
from support import gather

_T = TypeVar("_T")

MEASURE_LIMIT: Final = 1.5  # seconds in which a sensor must answer


class GlobeLocator:
    """Measures the position and the heading of a base. Created by `locator_of`."""

    def __init__(self, sensor: MovementSensor, heading: Callable[[], Awaitable[float]], name: str) -> None:
        self._sensor, self._heading, self._name = sensor, heading, name

    async def heading(self) -> float:
        """Return the heading in degrees clockwise from north. UNAVAILABLE without an answer in time."""
        value = await self._within(self._heading)
        if not math.isfinite(value):
            raise MachineError(f"{self._name} reports a heading of {value}", kind=ErrorKind.UNAVAILABLE)
        return value % 360.0

    async def position(self) -> GeoPoint:
        """Return the position. UNAVAILABLE without an answer in time, or if it is not on the globe, or 0, 0."""
        point = (await self._within(self._sensor.get_position)).coordinate
        try:
            check_geo(point, self._name)
        except MachineError as error:
            raise MachineError(str(error), kind=ErrorKind.UNAVAILABLE) from None
        if not point.latitude and not point.longitude:
            raise MachineError(f"{self._name} has no fix: its position is 0, 0", kind=ErrorKind.UNAVAILABLE)
        return point

    async def place(self, plane: Plane) -> Place:
        """Return position and heading in a plane."""
        measured: dict[str, float] = {}
        points: list[Point] = []

        async def position() -> None:
            points.append(plane.point(await self.position(), self._name))

        async def heading() -> None:
            measured["heading"] = await self.heading()

        await gather(position, heading)
        return Place(points[0], measured["heading"])

    async def _within(self, measure: Callable[[], Awaitable[_T]]) -> _T:
        with trio.move_on_after(MEASURE_LIMIT):
            return await measure()
        raise MachineError(f"{self._name} has not answered within {MEASURE_LIMIT:g} s", kind=ErrorKind.UNAVAILABLE)


async def locator_of(sensor: MovementSensor) -> GlobeLocator:
    """Return the locator of a sensor. PRECONDITION if it does not measure positions, or no heading."""
    name = sensor.name.short
    with trio.move_on_after(MEASURE_LIMIT):
        has = await sensor.get_properties()
        if not has.position_supported or not (has.compass_heading_supported or has.orientation_supported):
            raise MachineError(
                f"{name} does not measure both position and heading",
                kind=ErrorKind.PRECONDITION,
                remedy="merge a GPS receiver and a compass with the model merged",
            )
        heading = sensor.get_compass_heading if has.compass_heading_supported else partial(_by_orientation, sensor)
        return GlobeLocator(sensor, heading, name)
    raise MachineError(f"{name} has not answered within {MEASURE_LIMIT:g} s", kind=ErrorKind.UNAVAILABLE)


async def _by_orientation(sensor: MovementSensor) -> float:
    return -(await sensor.get_orientation()).theta

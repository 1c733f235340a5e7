"""A navigation service on a bench with the simulated rover."""

from __future__ import annotations

from typing import Any

import trio

from engine import NavGeoPose, NavPosition, NavWaypoint
from models.driving.plane import Point
from models.navigation.model import BuiltinNavigation
from schema import GeoPoint
from tests.unit.models.driving.rover import Rover, rover_of

API = "rdk:service:navigation"
ATTRIBUTES = {
    "base": "base",
    "movement_sensor": "gps",
    "meters_per_sec": 0.5,
    "degs_per_sec": 40.0,
    "position_polling_frequency_hz": 2.0,
}


class Rig:
    """The service and its rover."""

    def __init__(self, rover: Rover, service: BuiltinNavigation) -> None:
        self.rover, self.service = rover, service

    def geo(self, x: float, y: float) -> GeoPoint:
        return self.rover.plane.geo(Point(x, y))

    def at(self, x: float, y: float, heading: float | None = None) -> NavPosition:
        return NavPosition(geo_pose=NavGeoPose(self.geo(x, y), heading=heading))

    def stop(self, x: float, y: float) -> NavWaypoint:
        return NavWaypoint(position=self.at(x, y))

    def circle(self, x: float, y: float, radius: float) -> dict[str, Any]:
        point = self.geo(x, y)
        centre = {"latitude": point.latitude, "longitude": point.longitude}
        return {"type": "circle", "center": centre, "radius": radius}

    async def state(self) -> str:
        goal = (await self.service.get_navigation_status()).goal
        return "" if goal is None else goal.state.name

    async def ended(self) -> str:
        assert self.service._goal is not None
        await self.service._goal.ended.wait()
        assert not await self.rover.base.is_moving()
        return await self.state()


async def rig_of(nursery: trio.Nursery, **attributes: Any) -> Rig:
    rover = await rover_of(nursery)
    service = await rover.bench.add(API, "nav", {**ATTRIBUTES, **attributes}, model="rdk:builtin:builtin")
    return Rig(rover, service)

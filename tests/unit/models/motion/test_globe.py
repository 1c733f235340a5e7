"""MoveOnGlobe of the motion service, on a simulated base and movement sensor."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from models.motion.model import BuiltinMotion
from models.motion.motions import Motions
from runtime.server.memory import MemoryMachine, open_machine
from schema import ErrorKind, MachineError
from tests.unit.models.motion.support import MOTION

HOME = {"latitude": 40.7, "longitude": -73.98}
DOCUMENT: dict[str, Any] = {
    "components": [
        {"name": "rover", "api": "rdk:component:base", "model": "fake"},
        {"name": "gps", "api": "rdk:component:movement_sensor", "model": "fake", "attributes": {"base": "rover"}},
    ]
}
FAST = {"linear_m_per_sec": 0.5, "angular_degs_per_sec": 60.0}


def north(metres: float, east: float = 0.0) -> dict[str, float]:
    return {"latitude": 40.7 + metres / 111_320, "longitude": -73.98 + east / 84_396}


def disc(metres: float, radius: float, label: str = "", east: float = 0.0) -> dict[str, Any]:
    return {"location": north(metres, east), "geometries": [{"sphere": {"radius_mm": radius * 1000}, "label": label}]}


class Rig:
    """The machine and a client of it."""

    def __init__(self, memory: MemoryMachine) -> None:
        self.memory = memory

    async def call(self, method: str, **arguments: Any) -> Any:
        return await self.memory.client().call(MOTION, "builtin", method, **arguments)

    async def go(self, destination: dict[str, float], **more: Any) -> str:
        arguments = {"component_name": "rover", "movement_sensor_name": "gps", "motion_configuration": FAST, **more}
        execution: str = await self.call("move_on_globe", destination=destination, **arguments)
        return execution

    async def states(self) -> list[str]:
        return [each["status"]["state"] for each in await self.call("list_plan_statuses")]

    async def base(self, method: str, **arguments: Any) -> Any:
        return await self.memory.client().call("rdk:component:base", "rover", method, **arguments)

    async def place(self) -> tuple[float, float]:
        client = self.memory.client()
        at = (await client.call("rdk:component:movement_sensor", "gps", "get_position"))["coordinate"]
        return (at["latitude"] - 40.7) * 111_320, (at["longitude"] + 73.98) * 84_396


@asynccontextmanager
async def opened(document: dict[str, Any] = DOCUMENT) -> AsyncIterator[Rig]:
    async with open_machine(document) as memory:
        await memory.machine.lifecycle.running.wait()
        service = memory.machine.roster.hosts[f"{MOTION}/builtin"].resource
        assert isinstance(service, BuiltinMotion)
        service.motions = Motions(service)  # a thread would load it, which the virtual clock does not wait for
        yield Rig(memory)


async def test_a_drive_to_a_point(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        execution = await rig.go(north(5.0), heading=90.0)
        assert await rig.states() == ["IN_PROGRESS"]
        (status,) = await rig.call("list_plan_statuses", only_active_plans=True)
        assert (status["execution_id"], status["component_name"]) == (execution, "rover")
        await trio.sleep(60)
        assert await rig.states() == ["SUCCEEDED"]
        assert await rig.place() == pytest.approx((5.0, 0.0), abs=0.4)
        heading = await rig.memory.client().call("rdk:component:movement_sensor", "gps", "get_compass_heading")
        assert heading == pytest.approx(90.0, abs=4.0)
        plan = (await rig.call("get_plan", component_name="rover", execution_id=execution))["current_plan_with_status"]
        assert plan["plan"]["steps"][-1]["step"]["rover"]["pose"]["y"] == pytest.approx(5000.0, rel=0.01)


async def test_obstacles_are_avoided(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        await rig.go(north(10.0), obstacles=[disc(5.0, 1.0, "pond")])
        farthest = 0.0
        while "IN_PROGRESS" in await rig.states():
            place = await rig.place()
            farthest = max(farthest, abs(place[1]))
            assert math.hypot(place[0] - 5.0, place[1]) > 1.2
            await trio.sleep(1)
        assert farthest > 1.2
        assert await rig.place() == pytest.approx((10.0, 0.0), abs=0.4)


async def test_a_drive_ends_when_it_is_stopped(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        await rig.go(north(50.0))
        await trio.sleep(5)
        assert await rig.base("is_moving")
        await rig.call("stop_plan", component_name="rover")
        assert await rig.states() == ["STOPPED"]
        assert not await rig.base("is_moving")
        await rig.go(north(50.0))
        await trio.sleep(5)
        await rig.go(north(-50.0))  # replaces the drive before
        assert await rig.states() == ["STOPPED", "STOPPED", "IN_PROGRESS"]
        await trio.sleep(5)
        await rig.memory.client().call("viam.robot.v1.RobotService", "", "stop_all")
        assert (await rig.states())[-1] == "STOPPED"
        assert not await rig.base("is_moving")


@pytest.mark.parametrize("changed", ["rover", "gps"])
async def test_a_changed_configuration_ends_the_drive(autojump_clock: MockClock, changed: str) -> None:
    more = {"rover": {"width_mm": 500}, "gps": {"base": "rover", "x": 1}}
    components = [
        {**each, "attributes": more[changed]} if each["name"] == changed else each for each in DOCUMENT["components"]
    ]
    async with opened() as rig:
        await rig.go(north(50.0))
        await trio.sleep(5)
        rig.memory.write({"components": components})
        await trio.sleep(5)
        assert await rig.states() == ["FAILED"]
        assert not await rig.base("is_moving")


async def test_a_geofence(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        with pytest.raises(MachineError, match="outside the bounding regions"):
            await rig.go(north(20.0), bounding_regions=[disc(0.0, 10.0)])
        assert await rig.states() == ["FAILED"]
        await rig.go(north(5.0), bounding_regions=[disc(0.0, 10.0)])
        await trio.sleep(60)
        assert (await rig.states())[-1] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("arguments", "kind", "match"),
    [
        ({"destination": {"latitude": math.nan, "longitude": 0.0}}, ErrorKind.INVALID, "latitude"),
        ({"destination": {"latitude": 0.0, "longitude": math.inf}}, ErrorKind.INVALID, "longitude"),
        ({"destination": {"latitude": 41.7, "longitude": -73.98}}, ErrorKind.INVALID, "km away"),
        ({"heading": math.nan}, ErrorKind.INVALID, "heading"),
        ({"component_name": ""}, ErrorKind.INVALID, "component_name"),
        ({"component_name": "x" * 100_000}, ErrorKind.NOT_FOUND, "no base named"),
        ({"movement_sensor_name": "<b>"}, ErrorKind.NOT_FOUND, "no movement_sensor named"),
        ({"obstacles": [disc(3.0, 1.0)] * 1000}, ErrorKind.EXHAUSTED, "too many"),
        ({"obstacles": [disc(3.0, math.inf)]}, ErrorKind.INVALID, r"obstacles\.0"),
        ({"motion_configuration": {"linear_m_per_sec": -1.0}}, ErrorKind.INVALID, "linear_m_per_sec"),
        ({"motion_configuration": {"plan_deviation_m": math.nan}}, ErrorKind.INVALID, "plan_deviation_m"),
        ({"motion_configuration": {"position_polling_frequency_hz": 1e9}}, ErrorKind.INVALID, "frequency"),
        (
            {"motion_configuration": {"obstacle_detectors": [{"vision_service": "v", "camera": "c"}]}},
            ErrorKind.UNSUPPORTED,
            "not built",
        ),
    ],
)
async def test_requests_that_are_refused(
    autojump_clock: MockClock, arguments: dict[str, Any], kind: ErrorKind, match: str
) -> None:
    async with opened() as rig:
        with pytest.raises(MachineError, match=match) as caught:
            await rig.go(**{"destination": north(5.0), **arguments})
        assert caught.value.kind is kind
        assert len(str(caught.value)) < 500
        assert not await rig.base("is_moving")


async def test_a_map_needs_a_slam_service(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        with pytest.raises(MachineError, match="no SLAM service 'map'") as caught:
            await rig.call("move_on_map", destination={}, component_name="rover", slam_service_name="map")
        assert caught.value.kind is ErrorKind.PRECONDITION

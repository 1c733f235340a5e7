"""Locations, routes and zones of the navigation service, and its attributes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine import NavGeoPose, NavPosition, NavWaypoint
from models.navigation.attributes import NavigationConfig
from models.navigation.store import MAX_LOCATIONS
from schema import ConfigError, ErrorKind, GeoPoint, MachineError
from schema.attributes import decode_attributes
from tests.unit.models.navigation.support import ATTRIBUTES, Rig, rig_of

POINT = {"latitude": 52.5, "longitude": 13.4}


@pytest.fixture
async def rig(nursery: trio.Nursery) -> Rig:
    return await rig_of(nursery)


async def test_locations_and_routes_that_use_them(autojump_clock: MockClock, rig: Rig) -> None:
    service = rig.service
    here = await service.add_location("home")
    assert here.position is not None
    assert here.position.geo_pose is not None
    await service.add_location("Tor 7", rig.at(5.0, 5.0))
    await service.add_route("tour", [NavWaypoint(location="Tor 7"), rig.stop(1.0, 1.0)])
    with pytest.raises(MachineError, match="already"):
        await service.add_location("home")
    with pytest.raises(MachineError, match="uses the location"):
        await service.delete_location("Tor 7")
    await service.update_location("Tor 7", new_name="gate")
    assert [each.name for each in await service.list_locations()] == ["home", "gate"]
    assert (await service.get_route("tour")).waypoints[0].location == "gate"
    await service.update_route("tour", "round", [])
    assert (await service.get_route("round")).waypoints == ()
    await service.delete_location("gate")
    await service.delete_route("round")
    assert await service.list_routes() == []
    with pytest.raises(MachineError, match="there is no location 'gate'"):
        await service.get_location("gate")


@pytest.mark.parametrize("name", ["", " a", "a\n", "\x00", "x" * 101, "a\u202eb"])
async def test_names_that_are_refused(autojump_clock: MockClock, rig: Rig, name: str) -> None:
    with pytest.raises(MachineError, match="cannot be the name") as caught:
        await rig.service.add_location(name, rig.at(0.0, 0.0))
    assert caught.value.kind is ErrorKind.INVALID


async def test_the_number_of_locations_is_limited(autojump_clock: MockClock, rig: Rig) -> None:
    for number in range(MAX_LOCATIONS):
        await rig.service.add_location(f"place {number}", rig.at(0.0, 0.0))
    with pytest.raises(MachineError, match="already") as caught:
        await rig.service.add_location("more", rig.at(0.0, 0.0))
    assert caught.value.kind is ErrorKind.EXHAUSTED


@pytest.mark.parametrize(
    "place",
    [
        NavGeoPose(GeoPoint(math.nan, 0.0)),
        NavGeoPose(GeoPoint(0.0, 1e300)),
        NavGeoPose(GeoPoint(1.0, 1.0), heading=math.nan),
        NavGeoPose(GeoPoint(1.0, 1.0), heading=1e9),
    ],
)
async def test_positions_that_are_refused(autojump_clock: MockClock, rig: Rig, place: NavGeoPose) -> None:
    with pytest.raises(MachineError) as caught:
        await rig.service.add_location("it", NavPosition(geo_pose=place))
    assert caught.value.kind is ErrorKind.INVALID


async def test_zones(autojump_clock: MockClock, rig: Rig) -> None:
    service = rig.service
    await service.add_zone("pond", "keepout", rig.circle(0.0, 5.0, 2.0))
    box = {"type": "box", "center": POINT, "width": 3.0, "length": 2.0, "heading": 30.0}
    await service.add_zone("yard", "speed_limit", box, 0.2)
    corners = [
        {"latitude": 52.5, "longitude": 13.4},
        {"latitude": 52.5, "longitude": 13.401},
        {"latitude": 52.501, "longitude": 13.4},
    ]
    await service.update_zone("pond", geometry={"type": "polygon", "points": corners}, new_name="lake")
    assert [zone.name for zone in await service.list_zones("keepout")] == ["lake"]
    assert (await service.get_zone("yard")).max_speed == 0.2
    await service.delete_zone("lake")
    assert [zone.name for zone in await service.list_zones()] == ["yard"]


@pytest.mark.parametrize(
    ("kind", "geometry", "speed"),
    [
        ("wall", {"type": "circle", "center": POINT, "radius": 1.0}, None),
        ("speed_limit", {"type": "circle", "center": POINT, "radius": 1.0}, None),
        ("speed_limit", {"type": "circle", "center": POINT, "radius": 1.0}, math.nan),
        ("keepout", {}, None),
        ("keepout", {"type": "circle", "center": POINT, "radius": math.inf}, None),
        ("keepout", {"type": "circle", "center": POINT, "radius": -1.0}, None),
        ("keepout", {"type": "circle", "center": {"latitude": math.nan, "longitude": 0.0}, "radius": 1.0}, None),
        ("keepout", {"type": "circle", "center": "here", "radius": 1.0}, None),
        ("keepout", {"type": "box", "center": POINT, "width": 1.0, "length": 1.0, "heading": math.inf}, None),
        ("keepout", {"type": "polygon", "points": [POINT] * 2}, None),
        ("keepout", {"type": "polygon", "points": [POINT] * 10_000}, None),
        ("keepout", {"type": "polygon", "points": "abc"}, None),
    ],
)
async def test_zones_that_are_refused(
    autojump_clock: MockClock, rig: Rig, kind: str, geometry: dict[str, Any], speed: float | None
) -> None:
    with pytest.raises(MachineError) as caught:
        await rig.service.add_zone("it", kind, geometry, speed)
    assert caught.value.kind is ErrorKind.INVALID
    assert await rig.service.list_zones() == []


@pytest.mark.parametrize(
    ("attributes", "match"),
    [
        ({"movement_sensor": ""}, "movement_sensor is missing"),
        ({"map_type": "Mars"}, "map_type"),
        ({"store": {"type": "mongodb"}}, "store"),
        ({"meters_per_sec": 1000}, "meters_per_sec"),
        ({"obstacle_detectors": []}, "not built"),
        ({"obstacles": [{"location": {"latitude": 91, "longitude": 0}}]}, "latitude"),
        ({"obstacles": [{"location": POINT, "geometries": [{"type": "cone"}]}]}, r"obstacles\.0"),
        ({"bounding_regions": [{"location": POINT, "geometries": [{"type": "sphere", "r": -1}]}]}, "bounding_regions"),
    ],
)
def test_attributes_that_are_refused(attributes: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        decode_attributes(NavigationConfig, {**ATTRIBUTES, **attributes}, path="attributes")

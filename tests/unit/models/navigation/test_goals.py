"""Goals of the navigation service, driven by a simulated rover that slips and has a noisy position."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine import NavErrorCode, NavMode, NavPosition, NavWaypoint
from models.driving.plane import Point
from schema import ErrorKind, MachineError, Pose
from tests.unit.models.driving.rover import figures, no_fix
from tests.unit.models.driving.test_drive import TOUR
from tests.unit.models.navigation.support import API, ATTRIBUTES, Rig, rig_of


@pytest.fixture
async def rig(nursery: trio.Nursery) -> Rig:
    return await rig_of(nursery)


async def test_a_route_with_its_cross_track_error(
    autojump_clock: MockClock, rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    await rig.service.add_location("gate", rig.at(10.0, 10.0))
    stops = [NavWaypoint(location="gate") if point == TOUR[1] else rig.stop(*point) for point in TOUR]
    await rig.service.add_route("square", stops)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.rover.record)
        status = await rig.service.navigate_route("square", wait=True)
        nursery.cancel_scope.cancel()
    assert status.goal is not None
    assert status.goal.route is not None
    assert (status.goal.state.name, status.goal.mode, status.goal.route.index) == ("SUCCEEDED", NavMode.ROUTE, 3)
    assert rig.rover.place.distance(TOUR[-1]) < 0.8
    errors = rig.rover.errors([Point(0.0, 0.0), *TOUR])
    median, most, worst = figures(errors)
    with capsys.disabled():
        print(f"\nroute: cross-track error: median {median:.2f} m, 95 % {most:.2f} m, maximum {worst:.2f} m")
    assert median < 0.35
    assert most < 0.9
    assert worst < 1.3


async def test_the_status_of_a_drive(autojump_clock: MockClock, rig: Rig) -> None:
    idle = await rig.service.get_navigation_status()
    assert idle.localized
    assert idle.goal is None
    status = await rig.service.navigate_to_point(rig.at(0.0, 10.0, 90.0))
    assert status.goal is not None
    assert status.goal.progress is not None
    assert status.goal.progress.distance_remaining_m == pytest.approx(10.0, abs=1.0)
    await trio.sleep(10)
    status = await rig.service.get_navigation_status()
    assert status.velocity is not None
    assert status.velocity.linear_m_per_sec > 0.3
    assert status.position is not None
    assert status.position.geo_pose is not None
    assert status.position.geo_pose.location.latitude == pytest.approx(rig.geo(*rig.rover.place).latitude, abs=1e-5)
    assert (await rig.service.get_status())["goal"] == "active"
    assert await rig.ended() == "SUCCEEDED"
    assert abs(math.remainder(rig.rover.heading - 90.0, 360.0)) < 8.0


async def test_suspend_and_resume(autojump_clock: MockClock, rig: Rig) -> None:
    with pytest.raises(MachineError, match="no goal is active"):
        await rig.service.suspend()
    await rig.service.navigate_to_point(rig.at(0.0, 10.0))
    await trio.sleep(8)
    status = await rig.service.suspend("lunch")
    assert status.goal is not None
    assert (status.goal.state.name, status.goal.suspend_reason) == ("SUSPENDED", "lunch")
    place = rig.rover.place
    await trio.sleep(60)
    assert rig.rover.place == place
    await rig.service.resume()
    with pytest.raises(MachineError, match="no goal is suspended"):
        await rig.service.resume()
    assert await rig.ended() == "SUCCEEDED"
    assert rig.rover.place.distance(Point(0.0, 10.0)) < 0.8


@pytest.mark.parametrize("way", ["cancel", "stop", "remove", "replace"])
async def test_ends_of_a_drive(autojump_clock: MockClock, rig: Rig, way: str) -> None:
    await rig.service.navigate_to_point(rig.at(0.0, 50.0))
    await trio.sleep(8)
    goal = rig.service._goal
    assert goal is not None
    if way == "remove":
        await rig.rover.bench.remove(rig.service)
    elif way == "replace":
        await rig.service.navigate_to_point(rig.at(0.0, -50.0))
    else:
        await getattr(rig.service, way)()
    assert goal.state.name == "CANCELED"
    if way != "replace":
        assert not await rig.rover.base.is_moving()


async def test_a_caller_that_waits_and_leaves_ends_the_drive(autojump_clock: MockClock, rig: Rig) -> None:
    with trio.move_on_after(8):
        await rig.service.go_to_point(rig.at(0.0, 50.0))
    assert await rig.ended() == "CANCELED"


async def test_a_drive_continues_when_its_caller_leaves(autojump_clock: MockClock, rig: Rig) -> None:
    with trio.move_on_after(8):
        await rig.service.navigate_to_point(rig.at(0.0, 10.0))
        await trio.sleep_forever()
    assert await rig.ended() == "SUCCEEDED"


async def test_zones_are_driven_around_also_if_they_appear(autojump_clock: MockClock, rig: Rig) -> None:
    await rig.service.navigate_to_point(rig.at(0.0, 14.0))
    await trio.sleep(5)
    await rig.service.add_zone("pond", "keepout", rig.circle(0.0, 8.0, 2.0))
    pond, nearest = Point(0.0, 8.0), math.inf
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            nonlocal nearest
            while True:
                nearest = min(nearest, rig.rover.place.distance(pond))
                await trio.sleep(0.5)

        nursery.start_soon(watch)
        assert await rig.ended() == "SUCCEEDED"
        nursery.cancel_scope.cancel()
    assert nearest > 2.0
    assert rig.rover.place.distance(Point(0.0, 14.0)) < 0.8


async def test_direct_drives_pass_zones_but_not_regions(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    yard = {"location": {"latitude": 52.5, "longitude": 13.4}, "geometries": [{"type": "sphere", "r": 12000}]}
    rig = await rig_of(nursery, bounding_regions=[yard])
    await rig.service.add_zone("pond", "keepout", rig.circle(0.0, 5.0, 2.0))
    status = await rig.service.go_to_point(rig.at(0.0, 9.0), linear_m_per_sec=0.4)
    assert status.goal is not None
    assert status.goal.state.name == "SUCCEEDED"
    with pytest.raises(MachineError, match="outside the bounding regions"):
        await rig.service.go_to_point(rig.at(0.0, 20.0))


async def test_a_speed_limit(autojump_clock: MockClock, rig: Rig) -> None:
    await rig.service.add_zone("yard", "speed_limit", rig.circle(0.0, 0.0, 50.0), 0.1)
    await rig.service.navigate_to_point(rig.at(0.0, 10.0))
    await trio.sleep(20)
    assert 1.0 < rig.rover.place.y < 2.4


async def test_a_plan_is_a_preview_and_can_be_executed(autojump_clock: MockClock, rig: Rig) -> None:
    await rig.service.add_zone("pond", "keepout", rig.circle(0.0, 5.0, 2.0))
    plan = await rig.service.plan_to_point(rig.at(0.0, 10.0), rig.at(0.0, 0.0))
    assert len(plan.path) > 2
    assert 10.0 < plan.length_m < 14.0
    assert not await rig.rover.base.is_moving()
    await rig.service.execute_plan(plan)
    assert await rig.ended() == "SUCCEEDED"
    assert rig.rover.place.distance(Point(0.0, 10.0)) < 0.8


async def test_a_route_in_laps_from_the_nearest_waypoint(autojump_clock: MockClock, rig: Rig) -> None:
    stops = [rig.stop(0.0, 8.0), rig.stop(0.0, 1.0), rig.stop(0.0, 4.0)]
    status = await rig.service.navigate_route("", stops, start_nearest=True, loop=True)
    assert status.goal is not None
    assert status.goal.route is not None
    assert status.goal.route.index == 1
    await trio.sleep(120)
    status = await rig.service.cancel()
    assert status.goal is not None
    assert status.goal.route is not None
    assert status.goal.route.lap >= 1


async def test_a_lost_position_fails_the_goal(autojump_clock: MockClock, rig: Rig) -> None:
    await rig.service.navigate_to_point(rig.at(0.0, 50.0))
    await trio.sleep(8)
    rig.rover.sensor.fault = no_fix
    await trio.sleep(4)
    assert not await rig.rover.base.is_moving()
    assert not (await rig.service.get_navigation_status()).localized
    assert await rig.ended() == "FAILED"
    goal = (await rig.service.get_navigation_status()).goal
    assert goal is not None
    assert goal.error is not None
    assert goal.error.code is NavErrorCode.LOCALIZATION_LOST
    with pytest.raises(MachineError, match="no fix"):
        await rig.service.navigate_to_point(rig.at(0.0, 50.0))
    assert not await rig.rover.base.is_moving()


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"destination": NavPosition(pose=Pose())}, ErrorKind.INVALID),
        ({"destination": NavPosition()}, ErrorKind.INVALID),
        ({"location_name": "nowhere"}, ErrorKind.NOT_FOUND),
        ({"waypoints": [NavWaypoint()]}, ErrorKind.INVALID),
        ({"waypoints": []}, ErrorKind.INVALID),
        ({"waypoints": [NavWaypoint()] * 10_000}, ErrorKind.EXHAUSTED),
        ({"route_name": "x" * 10_000}, ErrorKind.NOT_FOUND),
    ],
)
async def test_goals_that_are_refused(
    autojump_clock: MockClock, rig: Rig, arguments: dict[str, Any], kind: ErrorKind
) -> None:
    calls = {
        "destination": rig.service.navigate_to_point,
        "location_name": rig.service.navigate_to_location,
        "waypoints": rig.service.navigate_route,
        "route_name": rig.service.navigate_route,
    }
    with pytest.raises(MachineError) as caught:
        await calls[next(iter(arguments))](**arguments)  # type: ignore[operator]
    assert caught.value.kind is kind
    assert len(str(caught.value)) < 400
    assert not await rig.rover.base.is_moving()


async def test_a_point_in_a_zone_has_no_way(autojump_clock: MockClock, rig: Rig) -> None:
    await rig.service.add_zone("pond", "keepout", rig.circle(0.0, 9.0, 2.0))
    with pytest.raises(MachineError, match="'pond'"):
        await rig.service.navigate_to_point(rig.at(0.0, 10.0))
    assert await rig.state() == "FAILED"


async def test_a_service_that_does_not_drive(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    rig = await rig_of(nursery, map_type="None")
    with pytest.raises(MachineError, match="map_type is None"):
        await rig.service.navigate_to_point(rig.at(0.0, 1.0))
    assert (await rig.service.get_properties()).map_type == 0
    assert not (await rig.service.get_navigation_status()).localized


async def test_two_services_do_not_drive_one_base(autojump_clock: MockClock, rig: Rig) -> None:
    other = await rig.rover.bench.add(API, "other", ATTRIBUTES, model="rdk:builtin:builtin")
    await rig.service.navigate_to_point(rig.at(0.0, 50.0))
    with pytest.raises(MachineError, match="nav"):
        await other.navigate_to_point(rig.at(0.0, -50.0))
    assert await rig.state() == "ACTIVE"

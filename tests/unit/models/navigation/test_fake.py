"""The simulated navigation service."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from engine import NavGeoPose, NavGoalState, NavPosition, NavWaypoint
from schema import GeoPoint, MachineError
from tests.unit.models.builtin.support import Bench
from tests.unit.models.navigation.support import API

PLACE = NavPosition(geo_pose=NavGeoPose(GeoPoint(40.701, -73.98)))


async def test_it_is_wherever_it_is_sent(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    service = await Bench(nursery).add(API)
    assert (await service.get_position()).geo_pose.location == GeoPoint(40.7, -73.98)
    assert (await service.get_navigation_status()).goal is None
    await service.add_location("home")
    await service.add_location("gate", PLACE)
    await service.add_route("tour", [NavWaypoint(location="home"), NavWaypoint(location="gate")])
    plan = await service.plan_to_location("gate")
    assert plan.length_m == pytest.approx(111.0, abs=0.5)
    for call in (
        service.navigate_to_location("gate"),
        service.go_to_location("home"),
        service.navigate_to_point(PLACE),
        service.go_to_location("home"),
        service.go_to_point(PLACE),
        service.go_to_location("home"),
        service.execute_plan(plan),
        service.go_to_location("home"),
        service.navigate_route("tour"),
    ):
        status = await call
        assert status.goal.state is NavGoalState.SUCCEEDED
    assert (await service.get_position()) == PLACE
    assert (await service.cancel()).localized
    assert (await service.get_properties()).routes_supported
    assert not (await service.get_costmap()).available
    await service.add_zone(
        "pond", "keepout", {"type": "circle", "center": {"latitude": 1, "longitude": 1}, "radius": 1}
    )
    for refused in (
        service.suspend(),
        service.resume(),
        service.navigate_route(),
        service.navigate_to_point(NavPosition()),
    ):
        with pytest.raises(MachineError):
            await refused

"""The navigation services through the NavigationClient of the unmodified official Python SDK."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from grpclib import Status
from viam.components.base import Base
from viam.proto.common import GeoPoint, GeoPose
from viam.proto.service.navigation import GoalState, MapType, NavMode, Position, Waypoint
from viam.robot.client import RobotClient
from viam.services.navigation import NavigationClient

from tests.e2e.harness import Server
from tests.e2e.sdk.test_components import play, refused, until
from tests.unit.models.motion.test_globe import DOCUMENT, north

ROVER = {
    "base": "rover",
    "movement_sensor": "gps",
    "store": {"type": "memory"},
    "meters_per_sec": 0.8,
    "degs_per_sec": 90.0,
    "position_polling_frequency_hz": 5.0,
}
SERVICES = [
    {"name": "nav", "api": "rdk:service:navigation", "model": "builtin", "attributes": ROVER},
    {"name": "pretended", "api": "rdk:service:navigation", "model": "fake"},
]


@pytest.fixture(scope="module")
def rover(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server({**DOCUMENT, "services": SERVICES}, tmp_path_factory.mktemp("machine")) as server:
        yield server.wait_running().address


def at(metres: float, east: float = 0.0) -> Position:
    return Position(geo_pose=GeoPose(location=GeoPoint(**north(metres, east))))


@pytest.mark.parametrize("name", ["nav", "pretended"])
def test_a_route_with_locations_and_a_zone(rover: str, name: str) -> None:
    async def script(robot: RobotClient) -> None:
        nav = NavigationClient.from_robot(robot, name)
        properties = await nav.get_properties()
        assert properties.map_type == MapType.MAP_TYPE_GPS
        assert properties.routes_supported
        await nav.add_location("gate", at(1.5))
        assert [each.name for each in await nav.list_locations()] == ["gate"]
        await nav.add_route("tour", [Waypoint(location="gate"), Waypoint(position=at(0.0))])
        centre = north(0.0, 10.0)
        await nav.add_zone("pond", "keepout", {"type": "circle", "center": centre, "radius": 1.0})
        assert (await nav.get_zone("pond")).geometry["radius"] == 1.0
        status = await nav.navigate_route("tour", wait=True)
        assert status.goal.state == GoalState.GOAL_STATE_SUCCEEDED
        assert status.goal.mode == NavMode.NAV_MODE_ROUTE
        assert status.goal.route.index == 1
        assert status.localized
        where = (await nav.get_position()).geo_pose.location
        assert where.latitude == pytest.approx(at(0.0).geo_pose.location.latitude, abs=6e-6)
        plan = await nav.plan_to_location("gate", at(0.0))
        assert plan.length_m == pytest.approx(1.5, rel=0.01)
        assert (await refused(Status.NOT_FOUND, nav.get_location("nowhere"))).message

    play(rover, script)


def test_suspend_resume_and_cancel(rover: str) -> None:
    async def script(robot: RobotClient) -> None:
        nav, base = NavigationClient.from_robot(robot, "nav"), Base.from_robot(robot, "rover")
        await nav.navigate_to_point(at(500.0))
        await until(base.is_moving)
        status = await nav.suspend("a person is on the way")
        assert status.goal.state == GoalState.GOAL_STATE_SUSPENDED
        assert not await base.is_moving()
        await nav.resume()
        await until(base.is_moving)
        status = await nav.cancel()
        assert status.goal.state == GoalState.GOAL_STATE_CANCELED
        assert not await base.is_moving()
        await nav.go_to_point(at(500.0), wait=False)
        await until(base.is_moving)
        await robot.stop_all()
        assert not await base.is_moving()
        assert (await nav.get_navigation_status()).goal.state == GoalState.GOAL_STATE_CANCELED

    play(rover, script)

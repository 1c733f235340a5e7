"""A simulated navigation service, which is wherever it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from engine import (
    Context,
    Extra,
    NavCostmap,
    NavGeoPose,
    NavGoal,
    NavGoalState,
    NavMapType,
    NavMode,
    NavPlan,
    NavPosition,
    NavProperties,
    NavRouteProgress,
    NavStatus,
    NavVelocity,
    NavWaypoint,
    model,
)
from models.driving.plane import Plane
from models.fake.common.simulated import SimulatedResource
from models.navigation.places import Places
from models.navigation.store import NavigationStore, check_position
from schema import ErrorKind, GeoPoint, MachineError

HOME: Final = GeoPoint(40.7, -73.98)  # of the simulated movement sensor


@model("rdk:builtin:fake")
class FakeNavigation(SimulatedResource, Places):
    """Reaches each goal at once. It drives no base, so nothing can be suspended."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.store = NavigationStore()
        self._place = NavGeoPose(HOME, heading=0.0)
        self._goal: NavGoal | None = None

    def plan_again(self) -> None:
        """Do nothing: there are no ways."""

    async def navigate_to_location(self, location_name: str, *, extra: Extra = None) -> NavStatus:
        """Be at a saved place."""
        return await self._reach(NavMode.PLANNED, [NavWaypoint(location=location_name)])

    async def navigate_to_point(self, destination: NavPosition, *, extra: Extra = None) -> NavStatus:
        """Be at a place."""
        return await self._reach(NavMode.PLANNED, [NavWaypoint(position=destination)])

    async def navigate_route(
        self,
        route_name: str = "",
        waypoints: Sequence[NavWaypoint] = (),
        start_index: int = 0,
        start_nearest: bool = False,
        loop: bool = False,
        wait: bool = False,
        *,
        extra: Extra = None,
    ) -> NavStatus:
        """Be at the last waypoint."""
        stops = self.store.routes.get(route_name).waypoints if route_name else waypoints
        route = NavRouteProgress(route_name, stops, max(0, len(stops) - 1))
        return await self._reach(NavMode.ROUTE, stops, route)

    async def _reach(
        self, mode: NavMode, stops: Sequence[NavWaypoint], route: NavRouteProgress | None = None
    ) -> NavStatus:
        await self.access()
        if not stops:
            raise MachineError("there is no waypoint", kind=ErrorKind.INVALID, remedy="name a route, or its waypoints")
        self.store.check_waypoints(stops)
        target = self.store.position_of(stops[-1])
        assert target.geo_pose is not None
        self._place = target.geo_pose
        now = datetime.now(UTC)
        self._goal = NavGoal(
            NavGoalState.SUCCEEDED,
            mode,
            target,
            stops[-1].location or None,
            route=route,
            started_at=now,
            finished_at=now,
        )
        return await self.get_navigation_status()

    async def plan_to_point(
        self, destination: NavPosition, start: NavPosition | None = None, *, extra: Extra = None
    ) -> NavPlan:
        """Return the straight way."""
        await self.access()
        begin = start or NavPosition(geo_pose=self._place)
        point = Plane(check_position(begin, "start")).point(check_position(destination, "destination"))
        return NavPlan([begin, destination], None, (point.x**2 + point.y**2) ** 0.5)

    async def plan_to_location(
        self, location_name: str, start: NavPosition | None = None, *, extra: Extra = None
    ) -> NavPlan:
        """Return the straight way."""
        position = self.store.locations.get(location_name).position
        assert position is not None
        return await self.plan_to_point(position, start)

    async def execute_plan(self, plan: NavPlan, *, extra: Extra = None) -> NavStatus:
        """Be at the end of the plan."""
        return await self._reach(NavMode.PLANNED, [NavWaypoint(position=each) for each in plan.path[-1:]])

    async def go_to_location(
        self,
        location_name: str,
        wait: bool | None = None,
        linear_m_per_sec: float | None = None,
        *,
        extra: Extra = None,
    ) -> NavStatus:
        """Be at a saved place."""
        return await self._reach(NavMode.DIRECT, [NavWaypoint(location=location_name)])

    async def go_to_point(
        self,
        destination: NavPosition,
        wait: bool | None = None,
        linear_m_per_sec: float | None = None,
        *,
        extra: Extra = None,
    ) -> NavStatus:
        """Be at a place."""
        return await self._reach(NavMode.DIRECT, [NavWaypoint(position=destination)])

    async def suspend(self, reason: str = "", *, extra: Extra = None) -> NavStatus:
        """Raise PRECONDITION: no goal lasts."""
        await self.access()
        raise MachineError("no goal is active", kind=ErrorKind.PRECONDITION, remedy="a simulated goal has no duration")

    async def resume(self, *, extra: Extra = None) -> NavStatus:
        """Raise PRECONDITION: no goal lasts."""
        await self.access()
        raise MachineError(
            "no goal is suspended", kind=ErrorKind.PRECONDITION, remedy="a simulated goal has no duration"
        )

    async def cancel(self, *, extra: Extra = None) -> NavStatus:
        """Do nothing: no goal lasts."""
        return await self.get_navigation_status()

    async def get_position(self, *, extra: Extra = None) -> NavPosition:
        """Return the last destination; at first 40.7 N, 73.98 W."""
        await self.access()
        return NavPosition(geo_pose=self._place)

    async def get_navigation_status(self, *, extra: Extra = None) -> NavStatus:
        """Return the position and the last goal."""
        position = await self.get_position()
        return NavStatus(position, True, NavVelocity(), self._goal, datetime.now(UTC), {})

    async def get_properties(self, *, extra: Extra = None) -> NavProperties:
        """Return a map on the globe."""
        await self.access()
        return NavProperties(NavMapType.GPS, planning_supported=True, zones_supported=True, routes_supported=True)

    async def get_costmap(self, layer: str = "", stride: int = 0, *, extra: Extra = None) -> NavCostmap:
        """Return that there is none."""
        await self.access()
        return NavCostmap()

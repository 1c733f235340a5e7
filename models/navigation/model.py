"""The navigation service `builtin`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import trio

from engine import (
    Actuator,
    Attributes,
    Base,
    Extra,
    MovementSensor,
    NavCostmap,
    NavGeoPose,
    NavGoalState,
    NavMapType,
    NavMode,
    NavPlan,
    NavPosition,
    NavProperties,
    NavStatus,
    NavVelocity,
    NavWaypoint,
    Started,
    model,
)
from models.driving.following import Follower
from models.driving.globe import SPACE, margin_of
from models.driving.locating import locator_of
from models.driving.plane import Plane
from models.navigation.attributes import NavigationConfig
from models.navigation.goals import Goal, Pilot, positions
from models.navigation.places import Places
from models.navigation.store import NavigationStore, check_position
from schema import ErrorKind, MachineError


@model("rdk:builtin:builtin")
class BuiltinNavigation(Actuator, Places):
    """Drives a base by a movement sensor with position and heading. Locations, routes and zones are kept in memory.

    A drive continues when its caller leaves, unless the caller waits for its end. The base stops when the goal ends, is
    suspended or cancelled, on StopAll, while there is no position, and when the service stops or is replaced.
    """

    Config: ClassVar[type[Attributes]] = NavigationConfig

    async def run(self, *, task_status: Started) -> None:
        """Accept goals until cancelled. PRECONDITION if the sensor does not measure both position and heading."""
        config: NavigationConfig = self.attributes
        self.store = NavigationStore()
        self._goal: Goal | None = None
        self._pilot: Pilot | None = None
        self._starting = trio.Lock()
        base = self.dependency(Base, config.base)
        self._margin = await margin_of(base)
        if config.on_globe:
            locator = await locator_of(self.dependency(MovementSensor, config.movement_sensor))
            self._pilot = Pilot(self, base, locator, self.store, self._margin)
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()

    @property
    def pilot(self) -> Pilot:
        """What drives. PRECONDITION if the map type says that nothing does."""
        if self._pilot is None:
            raise MachineError(
                f"{self.name} does not drive: map_type is None", kind=ErrorKind.PRECONDITION, remedy="set it to GPS"
            )
        return self._pilot

    def plan_again(self) -> None:
        """Let a planned drive in progress plan again."""
        goal = self._goal
        if goal is not None and goal.state is NavGoalState.ACTIVE:
            goal.interrupt()

    # ---- goals

    async def navigate_to_location(self, location_name: str, *, extra: Extra = None) -> NavStatus:
        """Begin to drive to a saved place, around zones and obstacles."""
        return await self._begin(Goal(NavMode.PLANNED, [self._stop_at(location_name)]))

    async def navigate_to_point(self, destination: NavPosition, *, extra: Extra = None) -> NavStatus:
        """Begin to drive to a place, around zones and obstacles."""
        return await self._begin(Goal(NavMode.PLANNED, [NavWaypoint(position=destination)]))

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
        """Begin to drive a saved route, or these waypoints."""
        stops = self.store.routes.get(route_name).waypoints if route_name else waypoints
        self.store.check_waypoints(stops)
        if not 0 <= start_index < len(stops):
            raise MachineError(
                f"there is no waypoint {start_index} of {len(stops)}", kind=ErrorKind.INVALID, remedy="start at another"
            )
        if start_nearest:
            here = await self.pilot.locator.position()
            plane = Plane(here)
            places = [check_position(self.store.position_of(stop), "a waypoint") for stop in stops]
            start_index = min(range(len(stops)), key=lambda i: math.hypot(*plane.point(places[i], f"waypoints.{i}")))
        goal = Goal(NavMode.ROUTE, tuple(stops), route=route_name, loop=loop, index=start_index)
        return await self._begin(goal, wait=wait)

    async def plan_to_point(
        self, destination: NavPosition, start: NavPosition | None = None, *, extra: Extra = None
    ) -> NavPlan:
        """Return the way to a place, without driving."""
        return await self._plan(NavWaypoint(position=destination), start)

    async def plan_to_location(
        self, location_name: str, start: NavPosition | None = None, *, extra: Extra = None
    ) -> NavPlan:
        """Return the way to a saved place, without driving."""
        return await self._plan(self._stop_at(location_name), start)

    async def _plan(self, stop: NavWaypoint, start: NavPosition | None) -> NavPlan:
        pilot = self.pilot
        destination = check_position(self.store.position_of(stop) if stop.location else stop.position, "destination")
        here = check_position(start, "start") if start is not None else await pilot.locator.position()
        plane, way = await pilot.way(here, destination)
        length = Follower(way, 1.0, 1.0).length
        return NavPlan(positions(plane, way), stop.location, length)

    async def execute_plan(self, plan: NavPlan, *, extra: Extra = None) -> NavStatus:
        """Begin to drive a way, from corner to corner; each part leads around zones that were added since."""
        stops = [NavWaypoint(position=position) for position in plan.path[1:] or plan.path]
        if not stops:
            raise MachineError("the plan has no path", kind=ErrorKind.INVALID, remedy="pass what a plan call returned")
        self.store.check_waypoints(stops)
        return await self._begin(Goal(NavMode.PLANNED, stops))

    async def go_to_location(
        self,
        location_name: str,
        wait: bool | None = None,
        linear_m_per_sec: float | None = None,
        *,
        extra: Extra = None,
    ) -> NavStatus:
        """Drive straight to a saved place; only bounding regions are respected."""
        return await self._go(self._stop_at(location_name), wait, linear_m_per_sec)

    async def go_to_point(
        self,
        destination: NavPosition,
        wait: bool | None = None,
        linear_m_per_sec: float | None = None,
        *,
        extra: Extra = None,
    ) -> NavStatus:
        """Drive straight to a place; only bounding regions are respected."""
        return await self._go(NavWaypoint(position=destination), wait, linear_m_per_sec)

    async def _go(self, stop: NavWaypoint, wait: bool | None, speed: float | None) -> NavStatus:
        if speed is not None and not 0.05 <= speed <= 100:
            raise MachineError(f"linear_m_per_sec is {speed:g}", kind=ErrorKind.INVALID, remedy="use 0.05 to 100 m/s")
        goal = Goal(NavMode.DIRECT, [stop], speed=math.inf if speed is None else speed)
        return await self._begin(goal, wait=wait is not False)

    def _stop_at(self, location: str) -> NavWaypoint:
        self.store.locations.get(location)
        return NavWaypoint(location=location)

    async def _begin(self, goal: Goal, *, wait: bool = False) -> NavStatus:
        """Replace the goal, and return when the first plan is made, or when the goal has ended."""
        pilot = self.pilot
        stops = [NavWaypoint(stop.location, self.store.position_of(stop)) for stop in goal.stops]
        for number, stop in enumerate(stops):
            check_position(stop.position, "the destination" if len(stops) == 1 else f"waypoints.{number}")
        async with self._starting:
            await self._end_goal()
            self._goal = goal
            await self._nursery.start(pilot.run, goal)
        if wait:
            try:
                await goal.ended.wait()
            except trio.Cancelled:
                goal.finish(NavGoalState.CANCELED)
                raise
        return await self._status()

    async def _end_goal(self) -> None:
        if self._goal is not None:
            self._goal.finish(NavGoalState.CANCELED)
            await self._goal.ended.wait()

    async def suspend(self, reason: str = "", *, extra: Extra = None) -> NavStatus:
        """Stop the base until `resume`."""
        goal = self._goal
        if goal is None or goal.state is not NavGoalState.ACTIVE:
            raise MachineError("no goal is active", kind=ErrorKind.PRECONDITION, remedy="start one")
        goal.state, goal.suspend_reason = NavGoalState.SUSPENDED, reason[:1000]
        goal.interrupt()
        await goal.resting.wait()
        return await self._status()

    async def resume(self, *, extra: Extra = None) -> NavStatus:
        """Continue a suspended goal."""
        goal = self._goal
        if goal is None or goal.state is not NavGoalState.SUSPENDED:
            raise MachineError("no goal is suspended", kind=ErrorKind.PRECONDITION, remedy="start one")
        await self.pilot.locator.position()
        if goal.state is NavGoalState.SUSPENDED:
            goal.state, goal.suspend_reason = NavGoalState.ACTIVE, None
            goal.changed.set()
        return await self._status()

    async def cancel(self, *, extra: Extra = None) -> NavStatus:
        """End the goal, and stop the base."""
        await self.stop()
        return await self._status()

    async def stop(self, *, extra: Extra = None) -> None:
        """End the goal, and stop the base."""
        await trio.lowlevel.checkpoint()
        await self._end_goal()

    async def is_moving(self) -> bool:
        """Return whether a goal is active."""
        await trio.lowlevel.checkpoint()
        return self._goal is not None and self._goal.state is NavGoalState.ACTIVE

    # ---- status

    async def get_position(self, *, extra: Extra = None) -> NavPosition:
        """Return where the base is. UNAVAILABLE without a position."""
        pilot = self.pilot
        if pilot.driver is not None and pilot.driver.estimate is not None and pilot.plane is not None:
            await trio.lowlevel.checkpoint()
            place = pilot.driver.estimate.place
            return NavPosition(geo_pose=NavGeoPose(pilot.plane.geo(place.point), heading=place.heading))
        point = await pilot.locator.position()
        return NavPosition(geo_pose=NavGeoPose(point, heading=await pilot.locator.heading()))

    async def get_navigation_status(self, *, extra: Extra = None) -> NavStatus:
        """Return where the base is, how it moves, and the newest goal."""
        return await self._status()

    async def _status(self) -> NavStatus:
        position, localized = None, False
        if self._pilot is not None:
            try:
                position = await self.get_position()
                localized = self._pilot.driver is None or self._pilot.driver.localized
            except (MachineError, NotImplementedError):
                pass
        else:
            await trio.lowlevel.checkpoint()
        goal, message = self._goal, None
        if goal is not None and self._pilot is not None:
            stop = goal.stops[min(goal.index, len(goal.stops) - 1)]
            try:
                target = self.store.position_of(stop)
            except MachineError:
                target = None  # its location has been deleted
            message = goal.message(self._pilot.progress(), target)
        driver = self._pilot.driver if self._pilot is not None else None
        velocity = driver.velocity if driver is not None else (0.0, 0.0)
        return NavStatus(position, localized, NavVelocity(*velocity), message, datetime.now(UTC), {})

    async def get_properties(self, *, extra: Extra = None) -> NavProperties:
        """Return what the service supports; the size is that of the base."""
        await trio.lowlevel.checkpoint()
        width = 2 * (self._margin - SPACE)
        if self._pilot is None:
            return NavProperties(footprint_width_m=width, robot_radius_m=width / 2)
        return NavProperties(
            NavMapType.GPS,
            footprint_width_m=width,
            robot_radius_m=width / 2,
            planning_supported=True,
            zones_supported=True,
            routes_supported=True,
        )

    async def get_costmap(self, layer: str = "", stride: int = 0, *, extra: Extra = None) -> NavCostmap:
        """Return that there is none: obstacles are shapes, not a grid."""
        await trio.lowlevel.checkpoint()
        return NavCostmap()

    async def get_status(self) -> Mapping[str, Any]:
        """Return the state of the goal, and what is left of its way."""
        goal = self._goal
        if goal is None:
            return {"goal": "none"}
        progress = self._pilot.progress() if self._pilot is not None else None
        status: dict[str, Any] = {"goal": goal.state.name.lower(), "waypoint": goal.index, "waypoints": len(goal.stops)}
        if goal.error is not None:
            status["error"] = goal.error.message
        return status | ({"left_m": round(progress.distance_remaining_m, 1)} if progress is not None else {})

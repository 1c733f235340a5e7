"""Navigation service: drives a base to places on a map, along routes, and around zones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any, ClassVar

from engine.resource import Extra, Service
from schema import API, GeoPoint, Orientation, Pose


class NavMapType(IntEnum):
    """The kind of positions: poses on a map, or on the globe."""

    UNSPECIFIED = 0
    LOCAL = 1
    GPS = 2


class NavGoalState(IntEnum):
    """State of a goal; the numbers are those of the API."""

    UNSPECIFIED = 0
    ACTIVE = 1
    SUSPENDED = 2
    SUCCEEDED = 3
    FAILED = 4
    CANCELED = 5


class NavMode(IntEnum):
    """How a goal is reached: by a planned way, straight, or along a route."""

    UNSPECIFIED = 0
    PLANNED = 1
    DIRECT = 2
    ROUTE = 3


class NavErrorCode(IntEnum):
    """Why a goal has failed."""

    UNSPECIFIED = 0
    NO_PATH = 1
    BLOCKED = 2
    LOCALIZATION_LOST = 3
    BASE_ERROR = 4
    TIMEOUT = 5
    OTHER = 6


@dataclass(frozen=True, slots=True)
class NavGeoPose:
    """A place on the globe, with a compass heading (degrees clockwise from north) or an orientation."""

    location: GeoPoint = field(default_factory=GeoPoint)
    altitude: float | None = None
    heading: float | None = None
    orientation_vector: Orientation | None = None


@dataclass(frozen=True, slots=True)
class NavPosition:
    """A place: a pose on a local map (mm), or on the globe."""

    pose: Pose | None = None
    geo_pose: NavGeoPose | None = None


@dataclass(frozen=True, slots=True)
class NavLocation:
    """A place with a name."""

    name: str = ""
    position: NavPosition | None = None


@dataclass(frozen=True, slots=True)
class NavWaypoint:
    """A stop of a route: the name of a location, or a place."""

    location: str | None = None
    position: NavPosition | None = None


@dataclass(frozen=True, slots=True)
class NavRoute:
    """Waypoints in their order."""

    name: str = ""
    waypoints: Sequence[NavWaypoint] = ()


@dataclass(frozen=True, slots=True)
class NavZone:
    """A region: `keepout`, or `speed_limit` with a highest speed (m/s)."""

    name: str = ""
    type: str = ""
    geometry: Mapping[str, Any] = field(default_factory=dict)
    max_speed: float | None = None


@dataclass(frozen=True, slots=True)
class NavPlan:
    """A way, and its length."""

    path: Sequence[NavPosition] = ()
    location: str | None = None
    length_m: float = 0.0


@dataclass(frozen=True, slots=True)
class NavVelocity:
    """Velocity of a base; turning left is positive."""

    linear_m_per_sec: float = 0.0
    angular_deg_per_sec: float = 0.0


@dataclass(frozen=True, slots=True)
class NavError:
    """Why a goal has failed."""

    code: NavErrorCode = NavErrorCode.UNSPECIFIED
    message: str = ""


@dataclass(frozen=True, slots=True)
class NavProgress:
    """What is left of the way to the current target."""

    distance_remaining_m: float = 0.0
    path: Sequence[NavPosition] = ()
    length_m: float = 0.0


@dataclass(frozen=True, slots=True)
class NavRouteProgress:
    """A route that is driven; `index` is the waypoint that is driven to."""

    name: str = ""
    waypoints: Sequence[NavWaypoint] = ()
    index: int = 0
    loop: bool = False
    lap: int = 0


@dataclass(frozen=True, slots=True)
class NavGoal:
    """A goal: its state, its target, and how far the base has come."""

    state: NavGoalState = NavGoalState.UNSPECIFIED
    mode: NavMode = NavMode.UNSPECIFIED
    target: NavPosition | None = None
    location: str | None = None
    progress: NavProgress | None = None
    route: NavRouteProgress | None = None
    suspend_reason: str | None = None
    error: NavError | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NavStatus:
    """Where the base is, whether that is certain, how it moves, and the newest goal."""

    position: NavPosition | None = None
    localized: bool = False
    velocity: NavVelocity | None = None
    goal: NavGoal | None = None
    updated_at: datetime | None = None
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class NavProperties:
    """What the service supports, and the size of the base (m)."""

    map_type: NavMapType = NavMapType.UNSPECIFIED
    footprint_length_m: float = 0.0
    footprint_width_m: float = 0.0
    robot_radius_m: float = 0.0
    planning_supported: bool = False
    costmap_supported: bool = False
    zones_supported: bool = False
    routes_supported: bool = False


@dataclass(frozen=True, slots=True)
class NavCostmap:
    """A grid of what it costs to drive somewhere."""

    available: bool = False
    layer: str = ""
    nav_backend: str = ""
    origin_x: float = 0.0
    origin_y: float = 0.0
    resolution: float = 0.0
    width: int = 0
    height: int = 0
    encoding: str = ""
    data: bytes = b""


class Navigation(Service):
    """A service that drives a base by itself. Calls that start a motion fail while it is not certain where the base is.

    There is one goal at a time; a new one replaces it.
    """

    API: ClassVar[API] = API("rdk", "service", "navigation")

    async def add_location(
        self, location_name: str, position: NavPosition | None = None, *, extra: Extra = None
    ) -> NavLocation:
        """Save a place under a name; without a position, where the base is. EXISTS if the name is taken."""
        raise NotImplementedError

    async def get_location(self, location_name: str, *, extra: Extra = None) -> NavLocation:
        """Return a saved place. NOT_FOUND if there is none."""
        raise NotImplementedError

    async def list_locations(self, *, extra: Extra = None) -> Sequence[NavLocation]:
        """Return all saved places."""
        raise NotImplementedError

    async def update_location(
        self,
        location_name: str,
        position: NavPosition | None = None,
        new_name: str | None = None,
        *,
        extra: Extra = None,
    ) -> NavLocation:
        """Change the position or the name of a saved place. Routes follow the name."""
        raise NotImplementedError

    async def delete_location(self, location_name: str, *, extra: Extra = None) -> None:
        """Delete a saved place. PRECONDITION if a route uses it."""
        raise NotImplementedError

    async def add_route(
        self, route_name: str, waypoints: Sequence[NavWaypoint] = (), *, extra: Extra = None
    ) -> NavRoute:
        """Save a route. EXISTS if the name is taken."""
        raise NotImplementedError

    async def get_route(self, route_name: str, *, extra: Extra = None) -> NavRoute:
        """Return a saved route. NOT_FOUND if there is none."""
        raise NotImplementedError

    async def list_routes(self, *, extra: Extra = None) -> Sequence[NavRoute]:
        """Return all saved routes."""
        raise NotImplementedError

    async def update_route(
        self,
        route_name: str,
        new_name: str | None = None,
        waypoints: Sequence[NavWaypoint] | None = None,
        *,
        extra: Extra = None,
    ) -> NavRoute:
        """Change the waypoints or the name of a saved route."""
        raise NotImplementedError

    async def delete_route(self, route_name: str, *, extra: Extra = None) -> None:
        """Delete a saved route."""
        raise NotImplementedError

    async def add_zone(
        self,
        zone_name: str,
        type: str,  # noqa: A002 - the name of the API
        geometry: Mapping[str, Any],
        max_speed: float | None = None,
        *,
        extra: Extra = None,
    ) -> NavZone:
        """Save a zone: `keepout`, or `speed_limit` with `max_speed`. A drive in progress takes it into account."""
        raise NotImplementedError

    async def get_zone(self, zone_name: str, *, extra: Extra = None) -> NavZone:
        """Return a saved zone. NOT_FOUND if there is none."""
        raise NotImplementedError

    async def list_zones(
        self,
        type: str = "",  # noqa: A002 - the name of the API
        *,
        extra: Extra = None,
    ) -> Sequence[NavZone]:
        """Return all saved zones, or those of a type."""
        raise NotImplementedError

    async def update_zone(
        self,
        zone_name: str,
        type: str | None = None,  # noqa: A002 - the name of the API
        geometry: Mapping[str, Any] | None = None,
        max_speed: float | None = None,
        new_name: str | None = None,
        *,
        extra: Extra = None,
    ) -> NavZone:
        """Change a saved zone."""
        raise NotImplementedError

    async def delete_zone(self, zone_name: str, *, extra: Extra = None) -> None:
        """Delete a saved zone."""
        raise NotImplementedError

    async def navigate_to_location(self, location_name: str, *, extra: Extra = None) -> NavStatus:
        """Begin to drive to a saved place, around zones and obstacles."""
        raise NotImplementedError

    async def navigate_to_point(self, destination: NavPosition, *, extra: Extra = None) -> NavStatus:
        """Begin to drive to a place, around zones and obstacles."""
        raise NotImplementedError

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
        """Begin to drive a saved route, or these waypoints. With `wait`, returns when the goal has ended."""
        raise NotImplementedError

    async def plan_to_point(
        self, destination: NavPosition, start: NavPosition | None = None, *, extra: Extra = None
    ) -> NavPlan:
        """Return the way to a place, by default from where the base is, without driving."""
        raise NotImplementedError

    async def plan_to_location(
        self, location_name: str, start: NavPosition | None = None, *, extra: Extra = None
    ) -> NavPlan:
        """Return the way to a saved place, by default from where the base is, without driving."""
        raise NotImplementedError

    async def execute_plan(self, plan: NavPlan, *, extra: Extra = None) -> NavStatus:
        """Begin to drive a way from `plan_to_point` or `plan_to_location`."""
        raise NotImplementedError

    async def go_to_location(
        self,
        location_name: str,
        wait: bool | None = None,
        linear_m_per_sec: float | None = None,
        *,
        extra: Extra = None,
    ) -> NavStatus:
        """Drive straight to a saved place, past zones and obstacles; returns on arrival unless `wait` is False."""
        raise NotImplementedError

    async def go_to_point(
        self,
        destination: NavPosition,
        wait: bool | None = None,
        linear_m_per_sec: float | None = None,
        *,
        extra: Extra = None,
    ) -> NavStatus:
        """Drive straight to a place, past zones and obstacles; returns on arrival unless `wait` is False."""
        raise NotImplementedError

    async def suspend(self, reason: str = "", *, extra: Extra = None) -> NavStatus:
        """Stop the base until `resume`. PRECONDITION without an active goal."""
        raise NotImplementedError

    async def resume(self, *, extra: Extra = None) -> NavStatus:
        """Continue a suspended goal. PRECONDITION without one."""
        raise NotImplementedError

    async def cancel(self, *, extra: Extra = None) -> NavStatus:
        """End the goal, and stop the base."""
        raise NotImplementedError

    async def get_position(self, *, extra: Extra = None) -> NavPosition:
        """Return where the base is."""
        raise NotImplementedError

    async def get_navigation_status(self, *, extra: Extra = None) -> NavStatus:
        """Return where the base is, how it moves, and the newest goal."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> NavProperties:
        """Return what the service supports."""
        raise NotImplementedError

    async def get_costmap(self, layer: str = "", stride: int = 0, *, extra: Extra = None) -> NavCostmap:
        """Return a grid of what it costs to drive somewhere."""
        raise NotImplementedError

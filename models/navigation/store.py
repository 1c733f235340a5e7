"""Locations, routes and zones by name, in memory. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Generic, Protocol, TypeVar

from engine import NavLocation, NavPosition, NavRoute, NavWaypoint, NavZone
from models.driving.plane import check_geo
from schema import ErrorKind, GeoPoint, MachineError

MAX_LOCATIONS: Final = 1000
MAX_ROUTES: Final = 100
MAX_ZONES: Final = 80
MAX_WAYPOINTS: Final = 1000  # of a route
MAX_NAME: Final = 100  # characters


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Item = TypeVar("Item", bound=_Named)


class Shelf(Generic[Item]):
    """Items by name; `what` is their kind, such as `location`. `version` counts changes."""

    def __init__(self, what: str, most: int) -> None:
        self._what, self._most = what, most
        self._items: dict[str, Item] = {}
        self.version = 0

    def get(self, name: str) -> Item:
        """Return an item; NOT_FOUND if there is none."""
        if name not in self._items:
            raise MachineError(
                f"there is no {self._what} {name[:MAX_NAME]!r}", kind=ErrorKind.NOT_FOUND, remedy="list them"
            )
        return self._items[name]

    def all(self) -> list[Item]:
        """Return all items."""
        return list(self._items.values())

    def add(self, item: Item) -> Item:
        """Add an item. EXISTS if its name is taken, INVALID for a name, EXHAUSTED if there are too many."""
        self._check_name(item.name)
        if len(self._items) >= self._most:
            raise MachineError(
                f"there are {self._most} {self._what}s already", kind=ErrorKind.EXHAUSTED, remedy="delete some"
            )
        self._items[item.name] = item
        self.version += 1
        return item

    def change(self, name: str, item: Item) -> Item:
        """Replace the item `name`, also under another name."""
        self.get(name)
        if item.name != name:
            self._check_name(item.name)
        self._items = {item.name if key == name else key: item if key == name else v for key, v in self._items.items()}
        self.version += 1
        return item

    def delete(self, name: str) -> None:
        """Delete an item; NOT_FOUND if there is none."""
        self.get(name)
        del self._items[name]
        self.version += 1

    def _check_name(self, name: str) -> None:
        if not 0 < len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
            raise MachineError(
                f"{name[:40]!r} cannot be the name of a {self._what}",
                kind=ErrorKind.INVALID,
                remedy=f"use 1 to {MAX_NAME} letters, digits and signs, without space at the ends",
            )
        if name in self._items:
            raise MachineError(
                f"there is a {self._what} {name!r} already", kind=ErrorKind.EXISTS, remedy="choose another name"
            )


class NavigationStore:
    """What a navigation service remembers until it stops."""

    def __init__(self) -> None:
        self.locations: Shelf[NavLocation] = Shelf("location", MAX_LOCATIONS)
        self.routes: Shelf[NavRoute] = Shelf("route", MAX_ROUTES)
        self.zones: Shelf[NavZone] = Shelf("zone", MAX_ZONES)

    def check_waypoints(self, waypoints: Sequence[NavWaypoint]) -> None:
        """Raise INVALID for a waypoint that is neither a location nor a place, EXHAUSTED for too many."""
        if len(waypoints) > MAX_WAYPOINTS:
            raise MachineError(
                f"{len(waypoints)} waypoints are too many",
                kind=ErrorKind.EXHAUSTED,
                remedy=f"use routes of at most {MAX_WAYPOINTS}",
            )
        for number, waypoint in enumerate(waypoints):
            if waypoint.location:
                self.locations.get(waypoint.location)
            else:
                check_position(waypoint.position, f"waypoints.{number}")

    def position_of(self, waypoint: NavWaypoint) -> NavPosition:
        """Return the place of a waypoint; NOT_FOUND if its location does not exist any more."""
        position = self.locations.get(waypoint.location).position if waypoint.location else waypoint.position
        assert position is not None
        return position

    def rename_location(self, old: str, new: str) -> None:
        """Let routes use the new name of a location."""
        for route in self.routes.all():
            waypoints = [replace(each, location=new) if each.location == old else each for each in route.waypoints]
            self.routes.change(route.name, replace(route, waypoints=tuple(waypoints)))

    def check_unused(self, location: str) -> None:
        """Raise PRECONDITION if a route uses a location."""
        for route in self.routes.all():
            if any(each.location == location for each in route.waypoints):
                raise MachineError(
                    f"the route {route.name!r} uses the location {location!r}",
                    kind=ErrorKind.PRECONDITION,
                    remedy="change the route first",
                )


def check_position(position: NavPosition | None, where: str) -> GeoPoint:
    """Return the point of a place. INVALID unless it is a place on the globe, with a finite heading if any."""
    if position is None or position.geo_pose is None:
        raise MachineError(
            f"{where} has no geo_pose",
            kind=ErrorKind.INVALID,
            remedy="this service has a map on the globe: set geo_pose",
        )
    place = position.geo_pose
    check_geo(place.location, where)
    heading = place.heading
    if heading is not None and not -360 <= heading <= 360:  # also for nan
        raise MachineError(f"{where}: a heading of {heading:g}", kind=ErrorKind.INVALID, remedy="use 0 to 360 degrees")
    return place.location

"""Locations, routes and zones of a navigation service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import trio

from engine import Extra, Navigation, NavLocation, NavPosition, NavRoute, NavWaypoint, NavZone
from models.navigation.store import NavigationStore, check_position
from models.navigation.zones import check_zone


class Places(Navigation):
    """The calls that save, return, change and delete locations, routes and zones in `store`."""

    store: NavigationStore

    def plan_again(self) -> None:
        """Let a planned drive in progress plan again."""
        raise NotImplementedError

    async def add_location(
        self, location_name: str, position: NavPosition | None = None, *, extra: Extra = None
    ) -> NavLocation:
        """Save a place under a name; without a position, where the base is."""
        position = position or await self.get_position()
        check_position(position, "position")
        return self.store.locations.add(NavLocation(location_name, position))

    async def get_location(self, location_name: str, *, extra: Extra = None) -> NavLocation:
        """Return a saved place."""
        await trio.lowlevel.checkpoint()
        return self.store.locations.get(location_name)

    async def list_locations(self, *, extra: Extra = None) -> Sequence[NavLocation]:
        """Return all saved places."""
        await trio.lowlevel.checkpoint()
        return self.store.locations.all()

    async def update_location(
        self,
        location_name: str,
        position: NavPosition | None = None,
        new_name: str | None = None,
        *,
        extra: Extra = None,
    ) -> NavLocation:
        """Change a saved place. A drive to it continues to where it was."""
        await trio.lowlevel.checkpoint()
        location = self.store.locations.get(location_name)
        if position is not None:
            check_position(position, "position")
            location = replace(location, position=position)
        location = self.store.locations.change(location_name, replace(location, name=new_name or location.name))
        self.store.rename_location(location_name, location.name)
        return location

    async def delete_location(self, location_name: str, *, extra: Extra = None) -> None:
        """Delete a saved place."""
        await trio.lowlevel.checkpoint()
        self.store.check_unused(location_name)
        self.store.locations.delete(location_name)

    async def add_route(
        self, route_name: str, waypoints: Sequence[NavWaypoint] = (), *, extra: Extra = None
    ) -> NavRoute:
        """Save a route."""
        await trio.lowlevel.checkpoint()
        self.store.check_waypoints(waypoints)
        return self.store.routes.add(NavRoute(route_name, tuple(waypoints)))

    async def get_route(self, route_name: str, *, extra: Extra = None) -> NavRoute:
        """Return a saved route."""
        await trio.lowlevel.checkpoint()
        return self.store.routes.get(route_name)

    async def list_routes(self, *, extra: Extra = None) -> Sequence[NavRoute]:
        """Return all saved routes."""
        await trio.lowlevel.checkpoint()
        return self.store.routes.all()

    async def update_route(
        self,
        route_name: str,
        new_name: str | None = None,
        waypoints: Sequence[NavWaypoint] | None = None,
        *,
        extra: Extra = None,
    ) -> NavRoute:
        """Change a saved route. A drive along it continues as it was."""
        await trio.lowlevel.checkpoint()
        route = self.store.routes.get(route_name)
        if waypoints is not None:
            self.store.check_waypoints(waypoints)
            route = replace(route, waypoints=tuple(waypoints))
        return self.store.routes.change(route_name, replace(route, name=new_name or route.name))

    async def delete_route(self, route_name: str, *, extra: Extra = None) -> None:
        """Delete a saved route."""
        await trio.lowlevel.checkpoint()
        self.store.routes.delete(route_name)

    async def add_zone(
        self,
        zone_name: str,
        type: str,  # noqa: A002 - the name of the API
        geometry: Mapping[str, Any],
        max_speed: float | None = None,
        *,
        extra: Extra = None,
    ) -> NavZone:
        """Save a zone; a planned drive in progress plans again."""
        await trio.lowlevel.checkpoint()
        zone = NavZone(zone_name, type, geometry, max_speed)
        check_zone(zone)
        self.store.zones.add(zone)
        self.plan_again()
        return zone

    async def get_zone(self, zone_name: str, *, extra: Extra = None) -> NavZone:
        """Return a saved zone."""
        await trio.lowlevel.checkpoint()
        return self.store.zones.get(zone_name)

    async def list_zones(
        self,
        type: str = "",  # noqa: A002 - the name of the API
        *,
        extra: Extra = None,
    ) -> Sequence[NavZone]:
        """Return all saved zones, or those of a type."""
        await trio.lowlevel.checkpoint()
        return [zone for zone in self.store.zones.all() if type in ("", zone.type)]

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
        """Change a saved zone; a planned drive in progress plans again."""
        await trio.lowlevel.checkpoint()
        old = self.store.zones.get(zone_name)
        zone = NavZone(
            new_name or old.name,
            type or old.type,
            old.geometry if geometry is None else geometry,
            old.max_speed if max_speed is None else max_speed,
        )
        check_zone(zone)
        self.store.zones.change(zone_name, zone)
        self.plan_again()
        return zone

    async def delete_zone(self, zone_name: str, *, extra: Extra = None) -> None:
        """Delete a saved zone; a planned drive in progress plans again."""
        await trio.lowlevel.checkpoint()
        self.store.zones.delete(zone_name)
        self.plan_again()

"""Calls for saved views of the list of machines."""

from __future__ import annotations

from cloud.domain.fleet import views
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind, Role, belongs
from cloud.domain.permissions.rules import allow, signed_in
from cloud.services.common.base import Service
from cloud.services.fleet import fleet_messages as m
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError


class FleetViews(Service):
    """Saved views: of the caller, and of its organization. Owners of the organization share views."""

    @allow(signed_in("the caller's own views, and those shared in its organization"))
    async def list_fleet_views(self) -> list[m.FleetView]:
        """Return the views of the caller and those shared in its organization, in order of their names."""

        def work(sql: Sql) -> list[m.FleetView]:
            organization = belongs(sql, self.author)
            entries = views.views(sql, organization, self.author.name) if organization else []
            return [m.FleetView(entry.id, entry.name, entry.query, not entry.owner) for entry in entries]

        return await self.read(work)

    @allow(signed_in("the caller's own views; shared ones: owners of the organization"))
    async def set_fleet_view(self, name: str, query: str, shared: bool = False) -> str:
        """Save a view, in place of one with the same name; return its id. Owners share views. INVALID, EXHAUSTED."""

        def work(sql: Sql) -> str:
            organization = belongs(sql, self.author)
            if not organization:
                raise MachineError("this key has no organization", kind=ErrorKind.PERMISSION)
            if shared:
                self.require(sql, Role.OWNER, ObjectKind.ORGANIZATION, organization)
            owner = "" if shared else self.author.name
            return views.save(sql, organization, owner, name, query.lstrip("?"), self.now())

        return await self.change(work)

    @allow(signed_in("the caller's own views; shared ones: owners of the organization"))
    async def delete_fleet_view(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Delete a view of the caller, or as an owner one that is shared. NOT_FOUND, PERMISSION."""

        def work(sql: Sql) -> None:
            view = views.view(sql, id)
            if belongs(sql, self.author) != view.organization_id or view.owner not in ("", self.author.name):
                raise missing("saved view", id)
            if not view.owner:
                self.require(sql, Role.OWNER, ObjectKind.ORGANIZATION, view.organization_id)
            views.delete(sql, id)

        await self.change(work)

"""Calls about roles, for the pages of keys and data; they are not published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cloud.domain.fleet.fleet import fleet, locations
from cloud.domain.permissions.access import ObjectKind, Role, place_of, role_at
from cloud.domain.permissions.credentials import require_in_force
from cloud.domain.permissions.rules import GIVES, allow, operator, signed_in
from cloud.services.common import messages as m
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql


@guarded
class RoleService(Service):
    """The calls about roles for one caller."""

    @allow(GIVES)
    async def places(self, organizations: Sequence[m.Organization]) -> Mapping[tuple[str, str], str]:
        """Return the places where the caller may grant roles (organizations, locations, machines) with names."""

        def work(sql: Sql) -> dict[tuple[str, str], str]:
            names = {
                ("organization", organization.id): f"everything in {organization.name}"
                for organization in organizations
                if role_at(sql, self.author, place_of(sql, ObjectKind.ORGANIZATION, organization.id)) >= Role.OWNER
            }
            names |= {
                ("location", location.id): f"location {location.path}"
                for location in locations(sql, self.author).values()
                if location.role is Role.OWNER
            }
            owned = [machine for machine in fleet(sql, self.author) if machine.role is Role.OWNER]
            names |= {("robot", machine.id): f"machine {machine.name} ({machine.location.path})" for machine in owned}
            return names

        return await self.read(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization", inside=True))
    async def owns(self, organization: str) -> bool:
        """Return whether the caller is an owner of the whole organization."""
        return await self.read_checked(
            lambda sql: role_at(sql, self.author, place_of(sql, ObjectKind.ORGANIZATION, organization)) >= Role.OWNER
        )

    @allow(signed_in("nothing but an error after logging out"))
    async def still_signed_in(self) -> None:
        """Raise UNAUTHENTICATED if the caller has logged out, for pages that need nothing else of the database."""
        await self.read(lambda sql: require_in_force(sql, self.author))

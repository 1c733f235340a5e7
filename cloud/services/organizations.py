"""Organizations and locations on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud import tenants
from cloud.access import Of, Role, best, place_of, visible
from cloud.author import Author
from cloud.data import retention
from cloud.keys import Grant
from cloud.services import messages as m
from cloud.services.base import Service
from cloud.store.sql import Sql
from schema.errors import ErrorKind, MachineError


class Organizations(Service):
    """What an owner arranges: organizations and their locations."""

    # ---- organizations

    async def list_organizations(self) -> list[m.Organization]:
        """Those in which the caller has a role anywhere."""

        def work(sql: Sql) -> list[m.Organization]:
            grants = visible(sql, self.author)
            return [_organization(one) for one in tenants.organizations(sql) if _reaches(sql, grants, one.id)]

        return await self.read(work)

    async def get_organization(self, organization_id: str) -> m.Organization:
        """One in which the caller has a role anywhere; NOT_FOUND."""
        return await self.read(lambda sql: _organization(_seen(sql, self.author, organization_id)))

    async def update_organization(
        self,
        organization_id: str,
        name: str | None = None,
        public_namespace: str | None = None,
        region: str | None = None,
        cid: str | None = None,
        default_fragments: Any = None,
        allowed_login_methods: Any = None,
    ) -> m.Organization:
        """Change the name, or give a namespace; the rest is not there to be changed."""
        if region or cid or default_fragments or allowed_login_methods:
            raise MachineError(
                "this cloud has no regions, customer ids, default fragments and sign-in methods",
                kind=ErrorKind.UNSUPPORTED,
                remedy="change only name and public_namespace",
            )

        def work(sql: Sql) -> m.Organization:
            tenants.update_organization(sql, organization_id, name=name, namespace=public_namespace)
            return _organization(tenants.organization(sql, organization_id))

        return await self.write(work)

    async def get_organization_namespace_availability(self, public_namespace: str, organization_id: str = "") -> bool:
        """Whether a namespace may be taken; whoever asks."""
        return await self.read(lambda sql: tenants.namespace_is_free(sql, public_namespace))

    async def delete_organization(self, organization_id: str) -> None:
        """Delete an organization without locations, with its keys and what its machines have captured."""

        def work(sql: Sql) -> None:
            retention.forget(sql, organization_id)
            tenants.delete_organization(sql, organization_id)

        await self.write(work)

    async def list_organization_members(self, organization_id: str) -> m.OrganizationMembers:
        """Nobody: this cloud knows keys, not people."""
        return m.OrganizationMembers(organization_id)

    # ---- locations

    async def list_locations(self, organization_id: str) -> list[m.Location]:
        """The locations of an organization in which the caller has a role."""

        def work(sql: Sql) -> list[m.Location]:
            owner = _seen(sql, self.author, organization_id)
            grants = visible(sql, self.author)
            return [
                _location(one, owner)
                for one in tenants.locations(sql, organization_id)
                if best(grants, place_of(sql, Of.LOCATION, one.id)) is not Role.NOBODY
            ]

        return await self.read(work)

    async def get_location(self, location_id: str) -> m.Location:
        """One location."""
        return await self.read(lambda sql: self._location(sql, location_id))

    async def create_location(
        self, organization_id: str, name: str, parent_location_id: str | None = None
    ) -> m.Location:
        """A new location, inside another one if that is named."""

        def work(sql: Sql) -> m.Location:
            made = tenants.create_location(sql, organization_id, name, parent_location_id or "", self.now())
            return self._location(sql, made)

        return await self.write(work)

    async def update_location(
        self,
        location_id: str,
        name: str | None = None,
        parent_location_id: str | None = None,
        region: str | None = None,
    ) -> m.Location:
        """Rename it, or move it; an empty parent moves it to the top. There are no regions."""
        if region:
            raise MachineError("this cloud has no regions", kind=ErrorKind.UNSUPPORTED)

        def work(sql: Sql) -> m.Location:
            if parent_location_id:
                self.require(sql, Role.OWNER, Of.LOCATION, parent_location_id)
            tenants.update_location(sql, location_id, name=name, parent=parent_location_id)
            return self._location(sql, location_id)

        return await self.write(work)

    async def delete_location(self, location_id: str) -> None:
        """Delete an empty location."""
        await self.write(lambda sql: tenants.delete_location(sql, location_id))

    def _location(self, sql: Sql, subject: str) -> m.Location:
        found = tenants.location(sql, subject)
        return _location(found, tenants.organization(sql, found.organization_id))

    # ---- metadata

    async def get_organization_metadata(self, organization_id: str) -> Mapping[str, Any]:
        """What people attached to it."""
        return await self.read(lambda sql: tenants.metadata(sql, "organization", organization_id))

    async def update_organization_metadata(self, organization_id: str, data: Mapping[str, Any]) -> None:
        """Replace it."""
        await self.write(lambda sql: tenants.set_metadata(sql, "organization", organization_id, data))

    async def get_location_metadata(self, location_id: str) -> Mapping[str, Any]:
        """What people attached to it."""
        return await self.read(lambda sql: tenants.metadata(sql, "location", location_id))

    async def update_location_metadata(self, location_id: str, data: Mapping[str, Any]) -> None:
        """Replace it."""
        await self.write(lambda sql: tenants.set_metadata(sql, "location", location_id, data))

    async def get_robot_metadata(self, id: str) -> Mapping[str, Any]:  # noqa: A002 - field of the wire
        """What people attached to it."""
        return await self.read(lambda sql: tenants.metadata(sql, "robot", id))

    async def update_robot_metadata(self, id: str, data: Mapping[str, Any]) -> None:  # noqa: A002 - field of the wire
        """Replace it."""
        await self.write(lambda sql: tenants.set_metadata(sql, "robot", id, data))

    async def get_robot_part_metadata(self, id: str) -> Mapping[str, Any]:  # noqa: A002 - field of the wire
        """What people attached to it."""
        return await self.read(lambda sql: tenants.metadata(sql, "part", id))

    async def update_robot_part_metadata(self, id: str, data: Mapping[str, Any]) -> None:  # noqa: A002 - field of the wire
        """Replace it."""
        await self.write(lambda sql: tenants.set_metadata(sql, "part", id, data))


def _seen(sql: Sql, author: Author, subject: str) -> tenants.Organization:
    """An organization in which somebody has a role anywhere; NOT_FOUND, also if it is another's."""
    if not _reaches(sql, visible(sql, author), subject):
        raise tenants.missing("organization", subject)
    return tenants.organization(sql, subject)


def _reaches(sql: Sql, grants: tuple[Grant, ...], owner: str) -> bool:
    of = {"organization": Of.ORGANIZATION, "location": Of.LOCATION, "robot": Of.ROBOT}
    for grant in grants:
        try:
            if place_of(sql, of[grant.kind], grant.subject).organization == owner:
                return True
        except MachineError:
            continue  # its resource was deleted
    return False


def _organization(one: tenants.Organization) -> m.Organization:
    return m.Organization(one.id, one.name, one.created, one.namespace)


def _location(one: tenants.Location, owner: tenants.Organization) -> m.Location:
    return m.Location(
        id=one.id,
        name=one.name,
        parent_location_id=one.parent_id,
        organizations=[m.LocationOrganization(owner.id)],
        created_on=one.created,
        robot_count=one.machines,
        primary_org_identity=m.OrganizationIdentity(owner.id, owner.name),
    )

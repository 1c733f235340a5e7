"""Published calls for organizations and locations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud.documents.pieces import LARGE, heavy
from cloud.documents.readable import metadata_text
from cloud.domain.data import retention
from cloud.domain.machines.machines import part
from cloud.domain.organizations import keys, sharing, tenants
from cloud.domain.people import invites, people
from cloud.domain.permissions.access import ObjectKind, Role, belongs, holder, is_home, place_of
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow, home_owner, operator, owner, signed_in
from cloud.domain.permissions.shown import Shown, reads_secrets, shown
from cloud.domain.training import jobs
from cloud.domain.triggering.queue import enqueue_checks, enqueue_checks_of_machine
from cloud.services.common import messages as m
from cloud.services.common.base import Service
from cloud.store.sql import Sql
from cloud.values.author import Author
from schema import ErrorKind, MachineError


class Organizations(Service):
    """Organizations and their locations."""

    # ---- organizations

    @allow(ROLE_ANYWHERE)
    async def list_organizations(self) -> list[m.Organization]:
        """Return the organizations in which the caller has a role."""

        def work(sql: Sql) -> list[m.Organization]:
            owner = belongs(sql, self.author)
            return [_organization(tenants.organization(sql, owner))] if owner else []

        return await self.read(work)

    @allow(ROLE_ANYWHERE)
    async def get_organization(self, organization_id: str) -> m.Organization:
        """Return an organization in which the caller has a role; NOT_FOUND otherwise."""
        return await self.read(lambda sql: _organization(_visible(sql, self.author, organization_id)))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
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
        """Change the name or set the namespace; UNSUPPORTED for all other properties."""
        if region or cid or default_fragments or allowed_login_methods:
            raise MachineError(
                "this cloud has no regions, customer ids, default fragments or login methods",
                kind=ErrorKind.UNSUPPORTED,
                remedy="change only name and public_namespace",
            )

        def work(sql: Sql) -> m.Organization:
            tenants.update_organization(sql, organization_id, name=name, namespace=public_namespace)
            return _organization(tenants.organization(sql, organization_id))

        return await self.change(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def update_organization_namespace(self, organization_id: str, new_public_namespace: str) -> m.Organization:
        """Set the namespace of an organization; see update_organization."""
        return await Organizations.update_organization(self, organization_id, public_namespace=new_public_namespace)

    @allow(signed_in("whether a namespace is available"))
    async def get_organization_namespace_availability(self, public_namespace: str, organization_id: str = "") -> bool:
        """Return whether a namespace is available, for any caller."""
        return await self.read(lambda sql: tenants.namespace_is_free(sql, public_namespace))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def delete_organization(self, organization_id: str) -> None:
        """Delete an organization without locations, with its keys, training jobs and the data of its machines."""

        def work(sql: Sql) -> None:
            retention.forget(sql, organization_id, self.now())
            sharing.forget_guest(sql, organization_id)
            invites.forget(sql, organization_id)
            jobs.forget(sql, organization_id)
            tenants.delete_organization(sql, organization_id)
            people.forget(sql)

        await self.change(work)

    # ---- locations

    @allow(ROLE_ANYWHERE)
    async def list_locations(self, organization_id: str) -> list[m.Location]:
        """Return the locations of an organization, and those shared with it, in which the caller has a role."""

        def work(sql: Sql) -> list[m.Location]:
            owner = _visible(sql, self.author, organization_id)
            roles = holder(sql, self.author)
            return [
                self._location(sql, location.id)
                for location in (*tenants.locations(sql, owner.id), *sharing.reached_locations(sql, owner.id))
                if roles.role(place_of(sql, ObjectKind.LOCATION, location.id)) is not Role.NONE
            ]

        return await self.read(work)

    @allow(operator(ObjectKind.LOCATION, "location_id"))
    async def get_location(self, location_id: str) -> m.Location:
        """Return a location."""
        return await self.read(lambda sql: self._location(sql, location_id))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_location(
        self, organization_id: str, name: str, parent_location_id: str | None = None
    ) -> m.Location:
        """Create a location, inside `parent_location_id` if given."""

        def work(sql: Sql) -> m.Location:
            location = tenants.create_location(sql, organization_id, name, parent_location_id or "", self.now())
            return self._location(sql, location)

        return await self.change(work)

    @allow(home_owner(ObjectKind.LOCATION, "location_id"))
    async def update_location(
        self,
        location_id: str,
        name: str | None = None,
        parent_location_id: str | None = None,
        region: str | None = None,
    ) -> m.Location:
        """Rename or move a location; an empty parent moves it to the top level. UNSUPPORTED for `region`."""
        if region:
            raise MachineError("this cloud has no regions", kind=ErrorKind.UNSUPPORTED, remedy="leave out `region`")

        def work(sql: Sql) -> m.Location:
            if parent_location_id:
                self.require(sql, Role.OWNER, ObjectKind.LOCATION, parent_location_id, home=True)
            with sharing.moving(sql, location_id):
                tenants.update_location(sql, location_id, name=name, parent=parent_location_id)
            if parent_location_id is not None:
                enqueue_checks(sql, tenants.location(sql, location_id).organization_id, self.now())
            return self._location(sql, location_id)

        return await self.change(work)

    @allow(home_owner(ObjectKind.LOCATION, "location_id"))
    async def delete_location(self, location_id: str) -> None:
        """Delete an empty location."""

        def work(sql: Sql) -> None:
            sharing.forget_location(sql, location_id)
            tenants.delete_location(sql, location_id)

        await self.change(work)

    def _location(self, sql: Sql, subject: str) -> m.Location:
        """Return a location as a message. Organizations with shared access see neither each other nor a parent that is
        not shared with them."""
        location = tenants.location(sql, subject)
        place = place_of(sql, ObjectKind.LOCATION, subject)
        home, reader = is_home(sql, self.author, place), keys.organization_of(sql, self.author.name)
        guests = [guest for guest in sharing.guests_of(sql, subject) if home or guest == reader]
        owner = tenants.organization(sql, location.organization_id)
        parent = location.parent_id if home or location.parent_id in sharing.reached(sql, reader) else ""
        return m.Location(
            id=location.id,
            name=location.name,
            parent_location_id=parent,
            organizations=[
                m.LocationOrganization(owner.id),
                *(m.LocationOrganization(guest, primary=False) for guest in guests),
            ],
            created_on=location.created,
            robot_count=tenants.machines_in(sql, location.id),
            primary_org_identity=m.OrganizationIdentity(owner.id, owner.name),
        )

    # ---- metadata

    async def _metadata(self, of: ObjectKind, kind: str, subject: str) -> Shown:
        return await self.read(
            lambda sql: shown(tenants.metadata(sql, kind, subject), whole=reads_secrets(sql, self.author, of, subject))
        )

    async def _set_metadata(self, kind: str, subject: str, data: Mapping[str, Any]) -> None:
        text = metadata_text(data) if not heavy(data) else await self.offload(LARGE, lambda: metadata_text(data))

        def work(sql: Sql) -> None:
            tenants.set_metadata(sql, kind, subject, data, text)
            if kind in ("robot", "part"):  # it has the tags
                machine = part(sql, subject).machine_id if kind == "part" else subject
                enqueue_checks_of_machine(sql, machine, self.now())

        await self.change(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def get_organization_metadata(self, organization_id: str) -> Shown:
        """Return the metadata of an organization."""
        return await self._metadata(ObjectKind.ORGANIZATION, "organization", organization_id)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def update_organization_metadata(self, organization_id: str, data: Mapping[str, Any]) -> None:
        """Replace the metadata of an organization."""
        await self._set_metadata("organization", organization_id, data)

    @allow(operator(ObjectKind.LOCATION, "location_id"))
    async def get_location_metadata(self, location_id: str) -> Shown:
        """Return the metadata of a location."""
        return await self._metadata(ObjectKind.LOCATION, "location", location_id)

    @allow(owner(ObjectKind.LOCATION, "location_id"))
    async def update_location_metadata(self, location_id: str, data: Mapping[str, Any]) -> None:
        """Replace the metadata of a location."""
        await self._set_metadata("location", location_id, data)

    @allow(operator(ObjectKind.ROBOT, "id"))
    async def get_robot_metadata(self, id: str) -> Shown:  # noqa: A002 - field of the wire
        """Return the metadata of a machine."""
        return await self._metadata(ObjectKind.ROBOT, "robot", id)

    @allow(owner(ObjectKind.ROBOT, "id"))
    async def update_robot_metadata(self, id: str, data: Mapping[str, Any]) -> None:  # noqa: A002 - field of the wire
        """Replace the metadata of a machine."""
        await self._set_metadata("robot", id, data)

    @allow(operator(ObjectKind.PART, "id"))
    async def get_robot_part_metadata(self, id: str) -> Shown:  # noqa: A002 - field of the wire
        """Return the metadata of a part."""
        return await self._metadata(ObjectKind.PART, "part", id)

    @allow(owner(ObjectKind.PART, "id"))
    async def update_robot_part_metadata(self, id: str, data: Mapping[str, Any]) -> None:  # noqa: A002 - field of the wire
        """Replace the metadata of a part."""
        await self._set_metadata("part", id, data)


def _visible(sql: Sql, author: Author, subject: str) -> tenants.Organization:
    """Return an organization in which the author has a role; NOT_FOUND otherwise."""
    if not subject or belongs(sql, author) != subject:
        raise tenants.missing("organization", subject)
    return tenants.organization(sql, subject)


def _organization(organization: tenants.Organization) -> m.Organization:
    return m.Organization(organization.id, organization.name, organization.created, organization.namespace)

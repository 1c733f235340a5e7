"""Published calls that find machines: by name, by access, by favorite."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from cloud.domain.fleet import favorites
from cloud.domain.machines import machines
from cloud.domain.organizations import keys, sharing, tenants
from cloud.domain.permissions.access import ObjectKind, Role, is_home, place_of, role_at
from cloud.domain.permissions.rules import OWN_MARKS, allow, operator
from cloud.services.common import messages as m
from cloud.services.common.base import Service
from cloud.services.machines.machines import PartFacts, part_facts, part_message, robot_message
from cloud.store.sql import Sql


@dataclass(frozen=True, slots=True)
class FavoriteMachine:
    """A machine that the caller marked as a favorite."""

    machine: m.Robot
    organization_id: str
    created_on: datetime


class MachineFinding(Service):
    """Ways to find a machine."""

    @allow(operator(ObjectKind.LOCATION, "location_id"))
    async def get_robot_part_by_name_and_location(self, name: str, location_id: str) -> m.RobotPart:
        """Return the part of that name in a machine of the location; NOT_FOUND if there is none."""

        def work(sql: Sql) -> PartFacts:
            for machine in machines.machines(sql, location_id):
                for part in machines.parts(sql, machine.id):
                    if part.name == name:
                        return part_facts(self, sql, part)
            raise tenants.missing("part", name)

        facts = await self.read(work)
        return await self.offload(len(facts.text), partial(part_message, facts, self.now()))

    @allow(operator(ObjectKind.LOCATION, "location_id"))
    async def get_organizations_with_access_to_location(self, location_id: str) -> list[m.OrganizationIdentity]:
        """Return the organization of a location and those with which it is shared. The latter do not see each other."""

        def work(sql: Sql) -> list[m.OrganizationIdentity]:
            place = place_of(sql, ObjectKind.LOCATION, location_id)
            home, reader = is_home(sql, self.author, place), keys.organization_of(sql, self.author.name)
            guests = [guest for guest in sharing.guests_of(sql, location_id) if home or guest == reader]
            organizations = [tenants.organization(sql, subject) for subject in (place.organization, *guests)]
            return [m.OrganizationIdentity(organization.id, organization.name) for organization in organizations]

        return await self.read(work)

    @allow(operator(ObjectKind.ROBOT, "machine_id"))
    async def add_favorite_machine(self, machine_id: str) -> None:
        """Mark a machine as a favorite; idempotent."""
        await self.change(lambda sql: favorites.mark(sql, self.author, machine_id, self.now()))

    @allow(OWN_MARKS)
    async def remove_favorite_machine(self, machine_id: str) -> None:
        """Remove the favorite mark of a machine, if any."""
        await self.change(lambda sql: favorites.unmark(sql, self.author, machine_id))

    @allow(OWN_MARKS)
    async def list_favorite_machines(self) -> list[FavoriteMachine]:
        """Return the caller's favorites that it may still see, newest first."""

        def work(sql: Sql) -> list[FavoriteMachine]:
            favorite_machines = []
            for favorite in favorites.favorites(sql, self.author):
                place = place_of(sql, ObjectKind.ROBOT, favorite.machine_id)
                if role_at(sql, self.author, place) is not Role.NONE:
                    shown = robot_message(self, machines.machine(sql, favorite.machine_id))
                    favorite_machines.append(FavoriteMachine(shown, place.organization, favorite.created))
            return favorite_machines

        return await self.read(work)

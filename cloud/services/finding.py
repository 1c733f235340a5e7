"""Ways to a machine: by name, by who has access, by who marked it as a favorite."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from cloud import keys, machines, sharing, tenants
from cloud.access import Of, Role, is_home, place_of, role_at
from cloud.services import messages as m
from cloud.services.base import Service
from cloud.services.machines import PartFacts, part_facts, part_message, robot_message
from cloud.store.sql import Sql
from cloud.times import moment_of, stored


@dataclass(frozen=True, slots=True)
class FavoriteMachine:
    """A machine that the caller has marked."""

    machine: m.Robot
    organization_id: str
    created_on: datetime


class Finding(Service):
    """Ways to a machine."""

    async def get_robot_part_by_name_and_location(self, name: str, location_id: str) -> m.RobotPart:
        """The part of that name, in a machine of the location; NOT_FOUND."""

        def work(sql: Sql) -> PartFacts:
            for one in machines.machines(sql, location_id):
                for part in machines.parts(sql, one.id):
                    if part.name == name:
                        return part_facts(self, sql, part)
            raise tenants.missing("part", name)

        found = await self.read(work)
        return await self.aside(len(found.text), partial(part_message, found, self.now()))

    async def get_organizations_with_access_to_location(self, location_id: str) -> list[m.OrganizationIdentity]:
        """The organization that the location belongs to, and those that it is shared with. Those who share it are not
        told of each other.
        """

        def work(sql: Sql) -> list[m.OrganizationIdentity]:
            place = place_of(sql, Of.LOCATION, location_id)
            home, reader = is_home(sql, self.author, place), keys.organization_of(sql, self.author.name)
            guests = [one for one in sharing.guests_of(sql, location_id) if home or one == reader]
            found = [tenants.organization(sql, one) for one in (place.organization, *guests)]
            return [m.OrganizationIdentity(one.id, one.name) for one in found]

        return await self.read(work)

    async def add_favorite_machine(self, machine_id: str) -> None:
        """Mark a machine; marked already it stays so."""
        await self.write(
            lambda sql: sql.run(
                "INSERT INTO favorites (author_type, author, machine_id, created) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                self.author.type,
                self.author.name,
                machine_id,
                stored(self.now()),
            )
        )

    async def remove_favorite_machine(self, machine_id: str) -> None:
        """Take the mark away, if there is one."""
        await self.write(
            lambda sql: sql.run(
                "DELETE FROM favorites WHERE author_type = ? AND author = ? AND machine_id = ?",
                self.author.type,
                self.author.name,
                machine_id,
            )
        )

    async def list_favorite_machines(self) -> list[FavoriteMachine]:
        """What the caller has marked and may still see, the newest first."""

        def work(sql: Sql) -> list[FavoriteMachine]:
            rows = sql.rows(
                "SELECT machine_id, created FROM favorites WHERE author_type = ? AND author = ? "
                "ORDER BY created DESC, machine_id",
                self.author.type,
                self.author.name,
            )
            found = []
            for row in rows:
                place = place_of(sql, Of.ROBOT, row["machine_id"])
                if role_at(sql, self.author, place) is not Role.NOBODY:
                    shown = robot_message(self, machines.machine(sql, row["machine_id"]))
                    found.append(FavoriteMachine(shown, place.organization, moment_of(row["created"])))
            return found

        return await self.read(work)

"""Calls for lists of machines, and their tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cloud.domain.configurations.fragment_uses import of_parts
from cloud.domain.fleet import fleet
from cloud.domain.fleet.fleet import FleetMachine
from cloud.domain.fleet.health import machine_state
from cloud.domain.fleet.listing import SORTS, Listing
from cloud.domain.fleet.positions import position_text, read_position
from cloud.domain.machines import reported as report
from cloud.domain.machines.listed import AWAITING, DEGRADED, OFFLINE, ONLINE
from cloud.domain.organizations import tags as tagging
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow, operator, owner
from cloud.domain.triggering.queue import enqueue_checks_of_machine
from cloud.services.common.base import Service
from cloud.services.fleet import fleet_messages as m
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError

PAGE: Final = 100
MAX_PAGE: Final = 500

Fragments = dict[str, list[tuple[str, str]]]
"""Ids and names of fragments by part."""


class FleetLists(Service):
    """Lists of machines."""

    @allow(ROLE_ANYWHERE)
    async def list_fleet_machines(
        self,
        filter: m.FleetFilter | None = None,  # noqa: A002 - field of the wire
        sort: str = "",
        page_token: str = "",
        limit: int = 0,
    ) -> m.ListFleetMachinesResponse:
        """Return a page of the machines that the caller may see, and match a filter. INVALID for an unknown order."""
        conditions = (filter or m.FleetFilter()).conditions()
        order, size = sort or SORTS[0], max(1, min(limit or PAGE, MAX_PAGE))
        position = read_position(page_token)
        if order not in SORTS or (page_token and position is None):
            what = f"the order {sort[:40]!r} does not exist" if order not in SORTS else "the page token is not valid"
            remedy = f"use one of {', '.join(SORTS)}, and the token of the page before"
            raise MachineError(what, kind=ErrorKind.INVALID, remedy=remedy)

        def work(sql: Sql) -> m.ListFleetMachinesResponse:
            listing = Listing(sql, self.author)
            rows = listing.page(conditions, order, position, size + 1)
            shown = fleet.chosen(sql, self.author, [row.machine for row in rows[:size]])
            counts = listing.counts()
            tags = tagging.tags_of(sql, [machine.id for machine in shown])
            fragments = of_parts(sql, [part.id for machine in shown for part in machine.parts])
            return m.ListFleetMachinesResponse(
                [self._message(machine, tags.get(machine.id, []), fragments) for machine in shown],
                position_text(rows[size - 1]) if len(rows) > size else "",
                listing.count(conditions),
                counts.total,
                counts.states.get(ONLINE, 0),
                counts.states.get(DEGRADED, 0),
                counts.states.get(OFFLINE, 0),
                counts.states.get(AWAITING, 0),
                counts.updating,
                counts.problems,
            )

        return await self.read(work)

    def _message(self, machine: FleetMachine, tags: Sequence[str], fragments: Fragments) -> m.FleetMachine:
        part = machine.parts[0]
        states = [report.states(each.reported) for each in machine.parts]
        return m.FleetMachine(
            machine.id,
            machine.name,
            machine.location.id,
            machine.location.path,
            part.id,
            machine_state(machine, self.now())[0],
            part.seen,
            report.server_version(part.reported),
            report.version(part.reported, "agent"),
            report.text_of(part.reported, "platform"),
            part.revision,
            str(part.reported.get("revision", "")).partition("+")[0][:12],
            sum(report.problem_count(each.reported) for each in machine.parts),
            report.rejected(part.reported),
            [state for state in report.STATES if any(state in each for each in states)],
            list(tags),
            list(dict.fromkeys(name for each in machine.parts for _, name in fragments.get(each.id, ()))),
        )

    @allow(operator(ObjectKind.ROBOT, "machine_id"))
    async def list_machine_tags(self, machine_id: str) -> list[str]:
        """Return the tags of a machine."""
        return await self.read(lambda sql: tagging.tags_of(sql, [machine_id]).get(machine_id, []))

    @allow(owner(ObjectKind.ROBOT, "machine_id"))
    async def add_machine_tags(self, machine_id: str, tags: Sequence[str]) -> list[str]:
        """Add tags to a machine; return all its tags. INVALID for texts that are not tags, EXHAUSTED."""
        return await self._retag(machine_id, tagging.checked_tags(tags), [])

    @allow(owner(ObjectKind.ROBOT, "machine_id"))
    async def remove_machine_tags(self, machine_id: str, tags: Sequence[str]) -> list[str]:
        """Remove tags from a machine and its parts; return the tags that are left."""
        return await self._retag(machine_id, [], tags)

    async def _retag(self, machine: str, add: Sequence[str], remove: Sequence[str]) -> list[str]:
        def work(sql: Sql) -> list[str]:
            if any(tagging.change(sql, machine, add, remove)):
                enqueue_checks_of_machine(sql, machine, self.now())
            return tagging.tags_of(sql, [machine]).get(machine, [])

        return await self.change(work)

"""Calls of the machine pages beyond the published API: the fleet, a machine, its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cloud.domain.configurations.fragment_uses import of_parts
from cloud.domain.data.segments import listed as segments
from cloud.domain.data.segments.listed import SegmentTotals
from cloud.domain.fleet import arrangements, fleet, fleet_logs, watching
from cloud.domain.fleet.fleet import FleetLocation, FleetMachine
from cloud.domain.fleet.fleet_logs import FleetLog
from cloud.domain.fleet.listing import FleetCounts, FleetFilter, Listing, MachinePart
from cloud.domain.fleet.positions import Position
from cloud.domain.fleet.watching import LiveSnapshot
from cloud.domain.machines import log_counts, logs, machines
from cloud.domain.machines.log_counts import LogCounts
from cloud.domain.machines.logs import LogQuery, LogRecord
from cloud.domain.machines.machines import PartRecord
from cloud.domain.organizations import named_objects, tags
from cloud.domain.organizations.first import first_organization
from cloud.domain.organizations.named_objects import NamedObject
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind, Role, holder, is_home, operated, place_of
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow, home_operator, operator, signed_in
from cloud.domain.releases import reports, requests
from cloud.domain.releases.reports import Received, RecordedOutcome
from cloud.domain.releases.requests import AgentRequest
from cloud.services.common.base import Service, guarded
from cloud.services.machines.whole_fleet import for_all_machines
from cloud.store.sql import Sql
from schema import MachineError


@dataclass(frozen=True, slots=True)
class SeenMachine:
    """A machine of the fleet with one of its parts, the part's last snapshot, and what its agent has reported."""

    machine: FleetMachine
    part: str
    snapshot: LiveSnapshot | None
    report: Received | None
    outcomes: list[RecordedOutcome]
    requests: list[AgentRequest]


@dataclass(frozen=True, slots=True)
class FleetPage:
    """A page of a list of machines. `before` and `after` are the positions of its ends if there are further machines.

    `tags` are by machine, `fragments` ids and names by part. `places`, `agents`, `servers` and `all_tags` are choices.
    """

    machines: list[FleetMachine]
    tags: Mapping[str, Sequence[str]]
    fragments: Mapping[str, Sequence[tuple[str, str]]]
    counts: FleetCounts
    matching: int
    before: Position | None
    after: Position | None
    places: list[FleetLocation]
    used_places: frozenset[str]
    agents: list[str]
    servers: list[str]
    all_tags: list[str]


@guarded
class FleetService(Service):
    """A request of a machine page."""

    @allow(ROLE_ANYWHERE)
    async def machines(self, parts: Sequence[str] | None = None) -> list[FleetMachine]:
        """Return the machines that the caller may see; with `parts`, only those that contain any of these parts."""
        return await self.read(lambda sql: fleet.fleet(sql, self.author, parts))

    @allow(ROLE_ANYWHERE)
    async def locations(self) -> list[FleetLocation]:
        """Return the locations that the caller has access to, sorted by path."""
        return await self.read(lambda sql: list(fleet.locations(sql, self.author).values()))

    @allow(ROLE_ANYWHERE)
    async def page(
        self,
        conditions: FleetFilter,
        sort: str,
        limit: int,
        *,
        after: Position | None = None,
        before: Position | None = None,
        choices: bool = True,
    ) -> FleetPage:
        """Return a page of the machines that the caller may see, after a position or before one, in one transaction.

        Without `choices`, what a filter can be chosen from is left empty.
        """

        def work(sql: Sql) -> FleetPage:
            listing = Listing(sql, self.author)
            backwards = before is not None
            position = before or after
            rows = listing.page(conditions, sort, position, limit + 1, backwards=backwards)
            if position is not None and not rows:  # the end has moved: show the first page
                backwards, position = False, None
                rows = listing.page(conditions, sort, None, limit + 1)
            more = len(rows) > limit
            rows = rows[1:] if more and backwards else rows[:limit]
            shown = fleet.chosen(sql, self.author, [row.machine for row in rows])
            counts = listing.counts()
            parts = [part.id for machine in shown for part in machine.parts]
            return FleetPage(
                shown,
                tags.tags_of(sql, [machine.id for machine in shown]),
                of_parts(sql, parts),
                counts,
                listing.count(conditions) if conditions != FleetFilter() else counts.total,
                rows[0] if rows and (more if backwards else position is not None) else None,
                rows[-1] if rows and (more or backwards) else None,
                list(listing.places.values()),
                listing.used_places() if choices else frozenset(),
                listing.choices("agent") if choices else [],
                listing.choices("server") if choices else [],
                listing.tags() if choices else [],
            )

        return await self.read(work)

    @allow(ROLE_ANYWHERE)
    async def search(self, text: str, limit: int) -> list[FleetMachine]:
        """Return up to `limit` machines that the caller may see, with all words of `text`, ordered by name.

        Unlike `page`, it counts nothing: the search of the pages calls it after each key.
        """

        def work(sql: Sql) -> list[FleetMachine]:
            rows = Listing(sql, self.author).page(FleetFilter(text=text), "name", None, limit)
            return fleet.chosen(sql, self.author, [row.machine for row in rows])

        return await self.read(work)

    @allow(signed_in("names of fragments and datasets: operators of the organization"))
    async def named_objects(self, text: str, limit: int) -> list[NamedObject]:
        """Return up to `limit` fragments, and as many datasets, of the caller's organization with all words of `text`.

        Empty for callers that are not operators of the whole organization.
        """

        def work(sql: Sql) -> list[NamedObject]:
            owner = operated(sql, self.author)
            return named_objects.search(sql, owner, text, limit) if owner else []

        return await self.read(work)

    @allow(ROLE_ANYWHERE)
    async def figures(self) -> tuple[list[FleetMachine], SegmentTotals | None]:
        """Return the machines for a scraper, and what is in segments if it may read metrics of the whole cloud.

        These metrics cover all tenants: only the organization of the first start gets them.
        """

        def totals(sql: Sql) -> SegmentTotals | None:
            first = first_organization(sql)
            operates_cloud = bool(first) and holder(sql, self.author).organization == first
            return segments.figures(sql) if operates_cloud else None

        return await for_all_machines(self, lambda machine: [machine]), await self.read(totals)

    @allow(signed_in("a machine or part at which the caller has a role; checked by the method"))
    async def machine(self, subject: str) -> SeenMachine:
        """Return a machine by its id or the id of a part; NOT_FOUND if it is absent or not accessible to the caller."""

        def work(sql: Sql) -> SeenMachine:
            parts = [subject]
            try:
                self.require(sql, Role.OPERATOR, ObjectKind.PART, subject)
            except MachineError:
                self.require(sql, Role.OPERATOR, ObjectKind.ROBOT, subject)
                parts = [part.id for part in machines.parts(sql, subject)]
            matching = fleet.fleet(sql, self.author, parts)
            if not matching:
                raise missing("machine", subject)
            snapshot = watching.latest_snapshot(sql, parts[0])
            report, outcomes = reports.newest(sql, parts[0]), reports.outcomes(sql, parts[0])
            waiting = requests.pending(sql, parts[0], self.now())
            return SeenMachine(matching[0], parts[0], snapshot, report, outcomes, waiting)

        return await self.read(work)

    @allow(operator(ObjectKind.ROBOT, "machine", inside=True))
    async def main_part(self, machine: str) -> str:
        """Return the id of a machine's main part."""
        return await self.read_checked(lambda sql: machines.parts(sql, machine)[0].id)

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def part(self, part: str) -> PartRecord:
        """Return a part."""
        return await self.read_checked(lambda sql: machines.part(sql, part))

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def arrangement(self, part: str) -> tuple[str, bool]:
        """Return how the cards of a part are arranged, and whether the caller may arrange them for everyone."""

        def work(sql: Sql) -> tuple[str, bool]:
            home = is_home(sql, self.author, place_of(sql, ObjectKind.PART, part))
            return arrangements.arrangement(sql, part), home

        return await self.read_checked(work)

    @allow(home_operator(ObjectKind.PART, "part"))
    async def set_arrangement(self, part: str, cards: str) -> None:
        """Arrange the cards of a part for everyone; `cards` is what `rpc.pages.arrangement` returns."""
        await self.change(lambda sql: arrangements.arrange(sql, part, cards))

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def log(self, part: str, query: LogQuery) -> tuple[PartRecord, list[LogRecord], int]:
        """Return a part, a page of its log, and the number of the newest log entry at that time."""
        return await self.read_checked(
            lambda sql: (machines.part(sql, part), logs.query(sql, part, query), logs.newest(sql))
        )

    @allow(ROLE_ANYWHERE)
    async def search_logs(self, conditions: FleetFilter, query: LogQuery) -> tuple[FleetLog, Mapping[str, MachinePart]]:
        """Return log entries of the machines that match, newest first, and these machines by part."""

        def work(sql: Sql) -> tuple[FleetLog, Mapping[str, MachinePart]]:
            parts = {part.id: part for part in Listing(sql, self.author).parts(conditions, fleet_logs.MAX_PARTS)}
            return fleet_logs.search(sql, tuple(parts), query, self.now()), parts

        return await self.read(work)

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def log_around(self, part: str, number: int, each: int) -> tuple[PartRecord, list[LogRecord]]:
        """Return a part, and the log entry with a number between up to `each` earlier and later ones. NOT_FOUND."""
        return await self.read_checked(lambda sql: (machines.part(sql, part), logs.around(sql, part, number, each)))

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def log_counts(self, part: str, start: datetime, end: datetime, points: int) -> LogCounts:
        """Return how many log entries of each level a part has, in buckets of time."""
        return await self.read_checked(lambda sql: log_counts.read(sql, part, start, end, points))

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def newest_log(self, part: str) -> int:
        """Return the number of the newest log entry, from which `arrived_logs` continues."""
        return await self.read_checked(logs.newest)

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def arrived_logs(self, part: str, since: int) -> list[LogRecord]:
        """Return the log entries of a part after entry number `since`."""
        return await self.read_checked(lambda sql: logs.arrived(sql, part, since))

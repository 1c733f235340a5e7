"""Calls for jobs on many machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import trio

from cloud.documents import pieces
from cloud.documents.paths import values_of
from cloud.documents.pieces import LARGE
from cloud.documents.readable import check_readable
from cloud.domain.configurations import configurations, fragments
from cloud.domain.fleet import fleet, jobs
from cloud.domain.fleet.fleet import Reached
from cloud.domain.fleet.jobs import Job
from cloud.domain.fleet.listing import FleetFilter, Listing
from cloud.domain.fleet.work import Work, WorkKind, checked_work, described, shown_value
from cloud.domain.machines import machines
from cloud.domain.organizations.keys import key
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind, Role, holder, require
from cloud.domain.permissions.rules import OWN_JOBS, OWN_MACHINES, allow
from cloud.services.common.base import Service
from cloud.services.common.standing import while_allowed
from cloud.services.fleet import fleet_messages as m
from cloud.services.fleet.preview import examined, preview
from cloud.store.sql import Sql
from cloud.values.author import KEY
from cloud.values.limits import FLEET_JOB_MACHINES, FLEET_WORK
from cloud.work.openings import STREAMS
from schema import ErrorKind, MachineError, masked

PAGE: Final = 100
MAX_PAGE: Final = 1000
MAX_SUGGESTED: Final = 300
"""Paths that a page offers."""
WAIT: Final = 20.0
"""Seconds after which a call that waits for progress returns without any."""


class FleetJobs(Service):
    """Jobs on many machines. They belong to the organization of the key that starts them."""

    @allow(OWN_MACHINES)
    async def preview_fleet_job(
        self,
        machine_ids: Sequence[str] = (),
        filter: m.FleetFilter | None = None,  # noqa: A002 - field of the wire
        every: bool = False,
        work: m.FleetWork | None = None,
    ) -> m.PreviewFleetJobResponse:
        """Return what a job would change on how many machines, with the difference for one of them.

        The machines are those with the ids, or those that match a filter, or with `every` all of them. INVALID for
        incomplete work; PERMISSION if the caller owns none of the machines.
        """
        plan = _work(work)

        def read(sql: Sql) -> tuple[Any, int, int]:
            selected = self._selected(sql, machine_ids, filter, every=every)
            permitted = self._permitted(sql, plan, selected)
            return examined(sql, plan, permitted), len(selected), len(selected) - len(permitted)

        facts, selected, not_permitted = await self.read(read)
        return await self.offload(LARGE, lambda: preview(plan, facts, selected, not_permitted))

    @allow(OWN_MACHINES)
    async def suggested_paths(
        self,
        machine_ids: Sequence[str] = (),
        filter: m.FleetFilter | None = None,  # noqa: A002 - as of the calls
        every: bool = False,
    ) -> list[tuple[str, str]]:
        """Return paths and values (JSON, without secrets) of the configuration of the first machine that is selected.

        Empty if the caller owns none of the machines. Not an RPC: a page offers them. INVALID for an unclear selection.
        """

        def read(sql: Sql) -> str:
            selected = self._selected(sql, machine_ids, filter, every=every)
            first = next((each for each in selected if each.role >= Role.OWNER and each.home), None)
            return "{}" if first is None else configurations.current_text(sql, machines.parts(sql, first.id)[0])

        text = await self.read(read)
        return await self.offload(len(text), lambda: _suggested(text))

    @allow(OWN_MACHINES)
    async def start_fleet_job(
        self,
        machine_ids: Sequence[str] = (),
        filter: m.FleetFilter | None = None,  # noqa: A002 - field of the wire
        every: bool = False,
        work: m.FleetWork | None = None,
        expected: int | None = None,
    ) -> str:
        """Start a job; return its id. The selection is that of PreviewFleetJob.

        Machines that the caller does not own are left out. `expected` is the number of machines that a preview has
        selected: PRECONDITION if it differs now. INVALID, PERMISSION, EXHAUSTED.
        """
        plan = _work(work)

        def start(sql: Sql) -> str:
            selected = self._selected(sql, machine_ids, filter, every=every)
            if expected is not None and expected != len(selected):
                raise MachineError(
                    f"{len(selected)} machines match now, and the preview was for {expected}",
                    kind=ErrorKind.PRECONDITION,
                    remedy="look at the preview again",
                )
            permitted = self._permitted(sql, plan, selected)
            entries: list[tuple[str, str, Mapping[str, Any]]]
            entries = [(machine.id, machine.name, {}) for machine in permitted]
            return jobs.start(sql, self._home(sql), self.author, plan, entries, self.now())

        return await self.change(start)

    @allow(OWN_JOBS)
    async def list_fleet_jobs(self) -> list[m.FleetJob]:
        """Return the jobs that the caller started, and as an owner all those of its organization, newest first."""

        def read(sql: Sql) -> list[m.FleetJob]:
            home = holder(sql, self.author).organization
            entries = jobs.jobs(sql, home) if home else []
            return [_message(sql, entry) for entry in entries if self._sees(sql, entry)]

        return await self.read(read)

    @allow(OWN_JOBS)
    async def get_fleet_job(
        self,
        id: str,  # noqa: A002 - field of the wire
        state: str = "",
        after: int = 0,
        limit: int = 0,
    ) -> m.GetFleetJobResponse:
        """Return a job with its machines after a position; with `state`, those with this outcome or `waiting`."""
        size = max(1, min(limit or PAGE, MAX_PAGE))

        def read(sql: Sql) -> m.GetFleetJobResponse:
            entry = self._job(sql, id)
            machines = jobs.machines(sql, id, state, max(0, min(after, 1 << 31)), size)
            return m.GetFleetJobResponse(
                _message(sql, entry),
                [
                    m.FleetJobMachine(each.position, each.machine, each.name, each.state, each.reason, each.ended)
                    for each in machines
                ],
            )

        return await self.read(read)

    @allow(OWN_JOBS)
    async def wait_for_fleet_job(self, id: str, finished: int) -> m.FleetJob:  # noqa: A002 - field of the wire
        """Return a job once more than `finished` machines have an outcome or it has ended, or after WAIT."""
        with (
            self.cloud.openings.hold(f"the key {self.author.name}", STREAMS),
            self.cloud.events.listening(jobs.TOPIC, id) as news,
        ):

            def read(sql: Sql) -> tuple[Job, m.FleetJob]:
                entry = self._job(sql, id)
                return entry, _message(sql, entry)

            def check(sql: Sql) -> None:
                self._job(sql, id)

            entry, message = await self.read(read)
            with trio.move_on_after(WAIT):
                with while_allowed(self.cloud, self.author, check):
                    while (
                        entry.finished <= finished and entry.state == jobs.RUNNING and not self.cloud.openings.closing
                    ):
                        await news.next()
                        entry, message = await self.read(read)
        return message

    @allow(OWN_JOBS)
    async def stop_fleet_job(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Stop a job: machines that it has not done are skipped. Nothing happens to one that has ended."""

        def stop(sql: Sql) -> None:
            self._job(sql, id)
            jobs.stop(sql, id, self.now())

        await self.change(stop)

    @allow(OWN_JOBS | "the machines: as for StartFleetJob")
    async def revert_fleet_job(self, id: str) -> str:  # noqa: A002 - field of the wire
        """Start a job that undoes an ended one on each machine that is still as it left it; return the new job's id.

        PRECONDITION for a job that runs, has changed nothing, cannot be undone, or is being undone. EXHAUSTED.
        """

        def revert(sql: Sql) -> str:
            entry = self._job(sql, id)
            _check_revertible(entry, jobs.jobs(sql, entry.organization_id))
            done = jobs.machines(sql, id, jobs.CHANGED, limit=FLEET_JOB_MACHINES.value)
            entries = [(each.machine, each.name, each.effect) for each in done]
            return jobs.start(sql, entry.organization_id, self.author, entry.work, entries, self.now(), undo_of=id)

        return await self.change(revert)

    # ---- who and what

    def _home(self, sql: Sql) -> str:
        if self.author.type != KEY:
            raise MachineError("only keys start jobs", kind=ErrorKind.PERMISSION, remedy="use an owner's key")
        return holder(sql, self.author).organization

    def _selected(
        self, sql: Sql, ids: Sequence[str], conditions: m.FleetFilter | None, *, every: bool
    ) -> list[Reached]:
        """Return the selected machines; NOT_FOUND for an id at which the caller has no role, INVALID."""
        chosen = conditions.conditions() if conditions is not None else FleetFilter()
        if bool(ids) + (chosen != FleetFilter()) + every != 1:
            raise MachineError(
                "the selection is not clear",
                kind=ErrorKind.INVALID,
                remedy="give ids of machines, or a filter with a condition, or `every`",
            )
        most = FLEET_JOB_MACHINES.value
        if ids:
            distinct = list(dict.fromkeys(ids))
            FLEET_JOB_MACHINES.check(len(distinct), "the selection")
            reached = fleet.reached(sql, self.author, distinct)
            if len(reached) < len(distinct):
                raise missing("machine", next(iter(set(distinct) - {machine.id for machine in reached})))
            return reached
        rows = Listing(sql, self.author).page(chosen, limit=most + 1)
        if len(rows) > most:
            FLEET_JOB_MACHINES.check(Listing(sql, self.author).count(chosen), "the selection")
        return fleet.reached(sql, self.author, [row.machine for row in rows])

    def _permitted(self, sql: Sql, work: Work, selected: Sequence[Reached]) -> list[Reached]:
        """Return the machines that the caller owns in its own organization; PERMISSION if there are only others."""
        if work.kind is WorkKind.MOVE:
            require(sql, self.author, Role.OWNER, ObjectKind.LOCATION, work.location_id, home=True)
        if work.kind is WorkKind.ADD_FRAGMENT:
            home = holder(sql, self.author).organization
            if fragments.usable(sql, home, work.fragment_id, work.fragment_version) is None:
                raise missing("fragment", f"{work.fragment_id} {work.fragment_version}".strip())
        permitted = [machine for machine in selected if machine.role >= Role.OWNER and machine.home]
        if selected and not permitted:
            raise MachineError(
                "this needs the role of an owner of the machines, in their own organization",
                kind=ErrorKind.PERMISSION,
                remedy="use a key with that role, or ask an owner",
            )
        return permitted

    def _sees(self, sql: Sql, entry: Job) -> bool:
        roles = holder(sql, self.author)
        if not roles.organization or roles.organization != entry.organization_id:
            return False
        owner = any(
            grant.role == "owner" and (grant.kind, grant.subject) == ("organization", entry.organization_id)
            for grant in roles.grants
        )
        return owner or (entry.author.type, entry.author.name) == (self.author.type, self.author.name)

    def _job(self, sql: Sql, subject: str) -> Job:
        """Return a job; NOT_FOUND also if the caller may not see it."""
        entry = jobs.job(sql, subject)
        if not self._sees(sql, entry):
            raise missing("fleet job", subject)
        return entry


def _suggested(text: str) -> list[tuple[str, str]]:
    values = values_of(masked(pieces.loads(text)), MAX_SUGGESTED)  # some secrets are recognized by their neighbors
    return [(path, shown_value(Work(WorkKind.SET_VALUE, path=path, value=value))) for path, value in values]


def _work(work: m.FleetWork | None) -> Work:
    """Return work from its message; INVALID."""
    sent = work or m.FleetWork()
    try:
        kind = WorkKind(sent.kind)
    except ValueError:
        raise MachineError(
            f"there is no work {sent.kind[:40]!r}",
            kind=ErrorKind.INVALID,
            remedy=f"use one of {', '.join(WorkKind)}",
        ) from None
    value: Any = None
    FLEET_WORK.check(sum(len(text) for text in (sent.path, sent.value_json, *sent.tags)), "the work")
    if kind is WorkKind.SET_VALUE and sent.value_json:
        try:
            value = json.loads(sent.value_json)
        except (ValueError, RecursionError) as error:
            raise MachineError(
                f"the value is not JSON: {error}",
                kind=ErrorKind.INVALID,
                remedy='write texts in quotation marks: "fast"',
            ) from None
        check_readable({"value": value})  # NaN would be stored as null, which removes the value
    return checked_work(
        Work(
            kind,
            sent.fragment_id,
            sent.fragment_version,
            sent.path,
            value,
            sent.program,
            sent.version,
            tuple(sent.tags),
            sent.location_id,
        )
    )


def _check_revertible(entry: Job, others: Sequence[Job]) -> None:
    text = ""
    if entry.state == jobs.RUNNING:
        text = "the job has not ended"
    elif entry.undo_of:
        text = "the job undoes another one"
    elif entry.work.kind is WorkKind.RESTART:
        text = "a restart cannot be undone"
    elif not entry.changed:
        text = "the job has changed nothing"
    elif any(other.undo_of == entry.id and other.state == jobs.RUNNING for other in others):
        text = "the job is being undone"
    if text:
        raise MachineError(text, kind=ErrorKind.PRECONDITION, remedy="nothing was changed")


def _message(sql: Sql, entry: Job) -> m.FleetJob:
    try:
        author = key(sql, entry.author.name).name
    except MachineError:
        author = ""  # the key was deleted
    revertible = entry.state != jobs.RUNNING and bool(entry.changed) and not entry.undo_of
    return m.FleetJob(
        entry.id,
        entry.work.kind.value,
        f"undo: {described(entry.work)}" if entry.undo_of else described(entry.work),
        entry.undo_of,
        entry.state,
        entry.total,
        entry.changed,
        entry.unchanged,
        entry.failed,
        entry.skipped,
        entry.created,
        entry.ended,
        author,
        revertible and entry.work.kind is not WorkKind.RESTART,
    )

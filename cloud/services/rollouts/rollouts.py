"""machine.cloud.v1.RolloutService: rollouts in stages, of revisions of fragments and of versions of programs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import trio
from msgspec import structs

from cloud.documents.pieces import LARGE
from cloud.domain.configurations import fragments
from cloud.domain.configurations.revisions import until_fresh
from cloud.domain.fleet.positions import Position, position_text, read_position
from cloud.domain.organizations.keys import key
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.rules import allow, operator, owner
from cloud.domain.releases import metadata, own
from cloud.domain.rollouts import choosing, records, stepping
from cloud.domain.rollouts.choosing import Target
from cloud.domain.rollouts.life import ENDED, MachineState, StagedRolloutState, decide
from cloud.domain.rollouts.plan import Plan, RolloutKind, assigned, described
from cloud.domain.rollouts.records import RolloutMember, StagedRollout
from cloud.services.common.base import Service, guarded
from cloud.services.common.standing import while_allowed
from cloud.services.configurations.configurations import decoded
from cloud.services.rollouts import rollout_messages as m
from cloud.store.sql import Sql
from cloud.values.author import Author
from cloud.values.limits import ROLLOUT_MACHINES
from cloud.work.openings import STREAMS
from schema import ErrorKind, MachineError
from uplink.releases import CHANNELS, STABLE

PAGE: Final = 100
MAX_PAGE: Final = 1000
WAIT: Final = 20.0  # seconds after which a call that waits returns without news
PAUSE: Final = 0.5  # seconds between two looks of a call that waits
ACTIONS: Final = ("pause", "resume", "next", "stop", "finish", "back")


@guarded
class RolloutService(Service):
    """Rollouts of an organization."""

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def preview_staged_rollout(
        self, organization_id: str, plan: m.RolloutPlan | None = None
    ) -> m.PreviewStagedRolloutResponse:
        """Return how many machines each stage would add. NOT_FOUND, INVALID, PRECONDITION as for the start."""
        sent = plan or m.RolloutPlan()
        planned = sent.plan()
        of, members, chosen, elsewhere = await self._members(organization_id, sent, planned)
        tags = {each.part: each.tags for each in chosen}
        stages = await self.offload(100 * len(tags), lambda: assigned("preview", planned.stages, tags))
        return m.PreviewStagedRolloutResponse(
            of.called,
            of.before,
            of.after,
            [
                m.PreviewStage(described(stage), sum(reached == number for reached in stages.values()))
                for number, stage in enumerate(planned.stages)
            ],
            len(chosen),
            len(members),
            elsewhere,
        )

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def start_staged_rollout(
        self, organization_id: str, plan: m.RolloutPlan | None = None, expected: int | None = None
    ) -> str:
        """Start a rollout, and return its id; its first stage gets the change at once.

        `expected` is the number of selected machines of a preview: PRECONDITION if it differs now. Machines whose
        configurations begin to use the fragment later get the revision when the rollout is finished. While the cloud
        keeps the keys of releases, it also puts the version into the channel `stable`.
        """
        sent = plan or m.RolloutPlan()
        planned = sent.plan()
        of, _, chosen, _ = await self._members(organization_id, sent, planned)
        if expected is not None and expected != len(chosen):
            raise MachineError(
                f"{len(chosen)} machines are selected now, and the preview was for {expected}",
                kind=ErrorKind.PRECONDITION,
                remedy="look at the preview again",
            )
        if of.kind is RolloutKind.PROGRAM:
            await self.offload(LARGE, metadata.load)

        def start(sql: Sql) -> str:
            self.again(sql)
            now = self.now()
            if choosing.target(sql, organization_id, sent.kind, sent.subject, sent.channel, sent.revision) != of:
                raise MachineError(
                    "the fragment was changed in the meantime", kind=ErrorKind.PRECONDITION, remedy="try again"
                )
            subject = choosing.start(sql, organization_id, self.author, of, planned, chosen, now)
            if of.kind is RolloutKind.PROGRAM and own.kept(sql, organization_id):
                own.publish(sql, organization_id, now, partial(_promoted, of))
            return subject

        return await self.change(start)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_staged_rollouts(self, organization_id: str) -> list[m.StagedRollout]:
        """Return the rollouts of an organization: open ones first, then those that ended, newest first."""

        def work(sql: Sql) -> list[m.StagedRollout]:
            entries = records.rollouts(sql, organization_id)
            entries.sort(key=lambda entry: entry.state in ENDED)
            return [message(sql, entry) for entry in entries]

        return await self.read(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def get_staged_rollout(
        self,
        organization_id: str,
        id: str,  # noqa: A002 - field of the wire
    ) -> m.GetStagedRolloutResponse:
        """Return a rollout with its history."""

        def work(sql: Sql) -> m.GetStagedRolloutResponse:
            entry = records.rollout(sql, organization_id, id)
            events = [
                m.StagedRolloutEvent(each.happened, each.kind, each.detail, _name(sql, each.author))
                for each in records.events(sql, id)
            ]
            return m.GetStagedRolloutResponse(message(sql, entry), events)

        return await self.read(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def wait_for_staged_rollout(
        self,
        organization_id: str,
        id: str,  # noqa: A002 - field of the wire
        seen: str = "",
    ) -> m.WaitForStagedRolloutResponse:
        """Return a rollout once it differs from what the caller has `seen`, or has ended, or after WAIT."""

        def work(sql: Sql) -> tuple[StagedRollout, m.StagedRollout]:
            entry = records.rollout(sql, organization_id, id)
            return entry, message(sql, entry)

        def check(sql: Sql) -> None:
            self.require(sql, Role.OPERATOR, ObjectKind.ORGANIZATION, organization_id)

        with (
            self.cloud.openings.hold(f"the key {self.author.name}", STREAMS),
            self.cloud.events.listening(records.TOPIC, organization_id) as news,
        ):
            entry, shown = await self.read(work)
            with trio.move_on_after(WAIT), while_allowed(self.cloud, self.author, check):
                while _digest(shown) == seen and entry.state not in ENDED and not self.cloud.openings.closing:
                    await news.next()
                    await trio.sleep(PAUSE)
                    entry, shown = await self.read(work)
        return m.WaitForStagedRolloutResponse(shown, _digest(shown))

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_staged_machines(
        self,
        organization_id: str,
        id: str,  # noqa: A002 - field of the wire
        state: str = "",
        page_token: str = "",
        limit: int = 0,
    ) -> m.ListStagedMachinesResponse:
        """Return a page of the machines of a rollout by name; with `state`, those in it. INVALID."""
        size, position = max(1, min(limit or PAGE, MAX_PAGE)), read_position(page_token)
        if (state and state not in tuple(MachineState)) or (page_token and position is None):
            what = "the page token is not valid" if position is None and page_token else f"no state {state[:40]!r}"
            raise MachineError(what, kind=ErrorKind.INVALID, remedy=f"use one of {', '.join(MachineState)}")
        after = ("", "") if position is None else (position.name, position.machine)

        def work(sql: Sql) -> m.ListStagedMachinesResponse:
            records.rollout(sql, organization_id, id)
            machines = records.machines(sql, id, state, after, size + 1)
            more = len(machines) > size
            last = machines[size - 1] if more else None
            return m.ListStagedMachinesResponse(
                [
                    m.StagedMachine(
                        each.part,
                        each.machine,
                        each.name,
                        each.stage,
                        each.state.value,
                        each.reason,
                        each.taken,
                        each.changed,
                    )
                    for each in machines[:size]
                ],
                position_text(Position("", "", last.name, last.part)) if last is not None else "",
            )

        return await self.read(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def change_staged_rollout(
        self,
        organization_id: str,
        id: str,  # noqa: A002 - field of the wire
        action: str,
    ) -> m.StagedRollout:
        """Do one of ACTIONS: `pause`, `resume`, `next` (stage), `stop`, `finish` (give it to all) or `back`.

        `back` lets all machines return at once: to the former revision, or to the newest older version that is signed
        in the channel `stable`. PRECONDITION if the state of the rollout does not permit it, or without a version to
        go back to; INVALID for another action.
        """
        if action not in ACTIONS:
            raise MachineError(
                f"there is no action {action[:40]!r}", kind=ErrorKind.INVALID, remedy=f"use {', '.join(ACTIONS)}"
            )

        def work(sql: Sql) -> m.StagedRollout:
            self.again(sql)
            entry = records.rollout(sql, organization_id, id)
            _act(sql, entry, action, self.author, self.now())
            self.record(called=entry.called, revision=entry.revision_to)
            return message(sql, records.rollout(sql, organization_id, id))

        return await self.change(work)

    @allow(owner(ObjectKind.FRAGMENT, "fragment_id"))
    async def update_fragment_for_rollout(
        self, fragment_id: str, fragment_config_json: str, last_known_update: datetime | None = None
    ) -> str:
        """Save a revision of a fragment that no machine gets until a rollout gives it to some; return its number.

        An equal document changes nothing. PRECONDITION if there is a save after `last_known_update`; INVALID.
        """
        document = await self.offload(len(fragment_config_json), lambda: decoded(fragment_config_json))

        def check(sql: Sql) -> fragments.CheckedFragment:
            return fragments.candidate(sql, fragment_id, document, last_known_update)

        def work(candidate: fragments.CheckedFragment, sql: Sql) -> str:
            self.again(sql)
            fragments.put(sql, candidate, self.author, self.now(), held=True)
            revision = fragments.fragment(sql, fragment_id).revision
            self.record(revision=revision)
            return str(revision)

        async def attempt() -> str:
            return await self.change(partial(work, await self.read(check)))

        return await until_fresh(attempt, lambda: self.change(lambda sql: work(check(sql), sql)))

    async def _members(
        self, owner: str, sent: m.RolloutPlan, plan: Plan
    ) -> tuple[Target, list[RolloutMember], list[RolloutMember], int]:
        """Return what is rolled out, the machines that it concerns, those that are selected, and the number of parts of
        other organizations. Configurations are read in several transactions, because they may be many.
        """

        def begin(sql: Sql) -> tuple[Target, list[str], frozenset[str]]:
            of = choosing.target(sql, owner, sent.kind, sent.subject, sent.channel, sent.revision)
            return of, choosing.candidates(sql, owner, of), choosing.places(sql, owner, plan)

        of, parts, at = await self.read(begin)
        members: list[RolloutMember] = []
        chosen: list[RolloutMember] = []
        for start in range(0, len(parts), choosing.BATCH):
            batch = parts[start : start + choosing.BATCH]

            def examine(sql: Sql, batch: list[str] = batch) -> tuple[list[RolloutMember], list[RolloutMember]]:
                using = choosing.concerned(sql, owner, of, batch)
                return using, choosing.selected(sql, plan, using, at)

            more, fitting = await self.read(examine)
            members += more
            chosen += fitting
            ROLLOUT_MACHINES.check(len(chosen), "the selection")
        elsewhere = await self.read(lambda sql: choosing.elsewhere(sql, owner, of))
        return of, members, chosen, elsewhere


def _act(sql: Sql, entry: StagedRollout, action: str, author: Author, now: datetime) -> None:
    actions: Mapping[str, Callable[[], None]] = {
        "pause": lambda: stepping.pause(sql, entry, StagedRolloutState.PAUSED, author, now),
        "stop": lambda: stepping.pause(sql, entry, StagedRolloutState.STOPPED, author, now, "stopped by a person"),
        "resume": lambda: stepping.resume(sql, entry, author, now),
        "finish": lambda: stepping.finish(sql, entry, author, now),
    }
    if action == "next":
        stepping.advance(sql, entry, author, now)
        stepping.settle(sql, entry.id, now)
    elif action == "back":
        choosing.check_may_return(sql, entry)
        stepping.back(sql, entry, author, now)
    else:
        actions[action]()


def _promoted(of: Target, entries: Sequence[metadata.SignedTarget]) -> list[metadata.SignedTarget]:
    """Return the targets with a version in the channel `stable`, where rollouts decide who gets it."""
    return [
        replace(entry, custom=structs.replace(entry.custom, channels=_with_stable(entry.custom.channels)))
        if (entry.custom.program, entry.custom.version) == (of.subject, of.after)
        else entry
        for entry in entries
    ]


def _with_stable(channels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(channel for channel in CHANNELS if channel == STABLE or channel in channels)


def _digest(shown: m.StagedRollout) -> str:
    numbers = [structs.astuple(stage) for stage in shown.stages]
    facts = (shown.state, shown.stage, shown.reason, shown.next, shown.returning, shown.returned, numbers)
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


_WAITING: Final = (MachineState.PENDING, MachineState.WAITING)
_OTHERS: Final = (MachineState.LATE, MachineState.SKIPPED, MachineState.RETURNING, MachineState.RETURNED)


def message(sql: Sql, entry: StagedRollout) -> m.StagedRollout:
    """Return a rollout as a message."""
    counts = records.counts(sql, entry.id)
    counts += [{}] * (len(entry.plan.stages) - len(counts))
    stages = []
    for number, (stage, numbers) in enumerate(zip(entry.plan.stages, counts, strict=True)):
        state = "done" if number < entry.stage or entry.state in ENDED else "later"
        stages.append(
            m.StagedStage(
                described(stage),
                "current" if number == entry.stage and entry.state not in ENDED else state,
                sum(numbers.values()),
                sum(numbers.get(each, 0) for each in _WAITING),
                numbers.get(MachineState.UPDATED, 0),
                numbers.get(MachineState.HEALTHY, 0),
                numbers.get(MachineState.FAILED, 0),
                numbers.get(MachineState.OFFLINE, 0),
                sum(numbers.get(each, 0) for each in _OTHERS),
            )
        )
    taken = records.last_taken(sql, entry.id) if entry.state is StagedRolloutState.ACTIVE else None
    first, last = records.authors(sql, entry.id)
    plan = entry.plan
    return m.StagedRollout(
        entry.id,
        entry.kind.value,
        entry.subject,
        entry.channel,
        entry.called,
        entry.revision_from,
        entry.revision_to,
        m.RolloutPlan(
            entry.kind.value,
            entry.subject,
            entry.channel,
            entry.revision_to,
            [m.RolloutStage(stage.percent, list(stage.tags)) for stage in plan.stages],
            list(plan.tags),
            list(plan.locations),
            plan.stop_after,
            plan.soak_seconds,
            not plan.automatic,
        ),
        entry.state.value,
        entry.stage,
        entry.reason,
        decide(stepping.facts_of(sql, entry))[1],
        None if taken is None else taken + timedelta(seconds=plan.soak_seconds),
        entry.failures,
        entry.total,
        entry.created,
        entry.changed,
        entry.ended,
        stages,
        sum(numbers.get(MachineState.RETURNING, 0) for numbers in counts),
        sum(numbers.get(MachineState.RETURNED, 0) for numbers in counts),
        _name(sql, first),
        _name(sql, last),
    )


def _name(sql: Sql, author: Author | None) -> str:
    """Return the name of the key of an author; empty if the key was deleted, or there is none."""
    try:
        return "" if author is None else key(sql, author.name).name
    except MachineError:
        return ""

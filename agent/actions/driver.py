"""The task that carries out the updates of one program: it stores each decision of `advance`, and then acts."""

from __future__ import annotations

import errno
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any, Final

import structlog
import trio

from agent.actions import disk
from agent.actions.clock import Clock
from agent.actions.gate import HookGate
from agent.actions.program import ProgramFacts, RestartPermission, UpdatedProgram, UpdateHooks
from agent.actions.steps import Actions, StepFailedError
from agent.control.report import WaitReport, waits
from agent.launch import links
from agent.layout import Layout
from agent.update import store
from agent.update.events import (
    DeadlinePassed,
    Event,
    Failed,
    HoldRequested,
    Offered,
    ProgramObserved,
    Resumed,
    RollBackRequested,
    Started,
    Succeeded,
    WindowOpened,
)
from agent.update.record import Release, ReleaseOffer, UpdateOutcome, UpdateRecord, UpdateStep
from agent.update.steps import MAX_HOLD, Action, UpdateDecision, advance, is_held, pause, subject
from schema import ErrorKind, MachineError
from support import ChangeSignal

OBSERVE: Final = 10.0
"""Seconds between two observations of a release on trial, if nothing happens."""
ASK_AGAIN: Final = 60.0
"""Seconds after which a refused permission is asked for again: a maintenance sensor reports no changes."""
RETRY: Final = 30.0
"""Seconds after which a record is stored again, or files are deleted again, after an error of the disk."""
JITTER: Final = 0.1
"""Part of a pause that is added at random, so that a fleet does not try again at the same moment."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_FULL_REASON: Final = "the disk became full during its trial"
_WATCHED: Final = frozenset({UpdateStep.TRIAL, UpdateStep.RECOVER})
_log = structlog.get_logger("agent.update")


class _Posted:
    """An event on its way; `done` is set once its decision is stored, or `error` says why it was dropped."""

    __slots__ = ("done", "error", "event", "may_fail")

    def __init__(self, event: Event, *, may_fail: bool) -> None:
        self.event, self.may_fail = event, may_fail
        self.done = trio.Event()
        self.error: OSError | None = None


class Driver:
    """Updates one program. All methods may be called while `run` runs; only one driver may exist for a record.

    `run_blocking` calls functions in a worker thread.
    """

    def __init__(
        self,
        name: str,
        layout: Layout,
        program: UpdatedProgram,
        actions: Actions,
        permission: RestartPermission,
        hooks: UpdateHooks,
        run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]],
        *,
        clock: Clock | None = None,
    ) -> None:
        self.record: UpdateRecord | None = None
        """The stored record; None until `run` has loaded it, and if the program is not installed."""
        self.waiting: tuple[WaitReport, ...] = ()
        """What the step WAIT waits for."""
        self.problem = ""
        """Why the record cannot be loaded or stored, or files cannot be deleted; or empty."""
        self._name, self._layout = name, layout
        self._program, self._actions = program, actions
        self._permission, self._hooks = permission, hooks
        self._run_blocking = run_blocking
        self._clock = clock or Clock()
        self._gate = HookGate(name, permission, hooks, self._clock)
        self._send, self._receive = trio.open_memory_channel[_Posted](0)
        self._changed = ChangeSignal()
        self._runs = False
        self._requested = ""  # hash of the release that a person wants at once
        self._scope = trio.CancelScope()
        self._ended = trio.Event()  # the action has ended
        self._ended.set()

    # ---- for the owner

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Continue the update that was interrupted, and carry out those that are offered, until cancelled.

        `started` once the record is loaded. Returns if the program is not installed or its record is damaged.
        """
        record = await self._load()
        if record is None:
            task_status.started()
            return
        self.record = record
        self._runs = True
        try:
            async with trio.open_nursery() as nursery:
                await self._deliver(nursery, Resumed())
                task_status.started()
                while True:
                    posted = None
                    with trio.move_on_at(self._deadline(self.record)):
                        posted = await self._receive.receive()
                    if posted is None:
                        await self._deliver(nursery, DeadlinePassed())
                    else:
                        await self._process(nursery, posted)
        finally:
            self._runs = False

    def changes(self) -> AsyncGenerator[UpdateRecord | None, None]:
        """Yield the record now and after each change of it, of `waiting` or of `problem`.

        A slow reader misses intermediate ones.
        """
        return self._changed.values(lambda: self.record)

    # ---- requests; each returns when the decision is stored, or raises MachineError

    async def offer(self, offer: ReleaseOffer | None, *, now: bool = False) -> None:
        """Offer a release, or none; with `now`, do not wait for the maintenance window. May be repeated."""
        if offer is not None and now:
            self._requested = offer.release.sha256
            self._gate.hurry()
            self._notice()
        if self._is_news(offer):
            await self._post(Offered(offer), may_fail=True)

    async def roll_back(self) -> None:
        """Go back to the release that ran before. PRECONDITION if there is none."""
        before = self.record
        await self._post(RollBackRequested(), may_fail=True)
        if before is not None and self.record == before:
            back = before.progress is not None and before.progress.step in (UpdateStep.ROLL_BACK, UpdateStep.RECOVER)
            raise MachineError(
                f"{self._name} goes back already" if back else f"there is no older release of {self._name} on the disk",
                kind=ErrorKind.PRECONDITION,
                remedy="wait until it has ended" if back else "select a version: `machine agent update VERSION`",
            )

    async def hold(self, until: float) -> None:
        """Switch to no other release before `until`, in seconds since 1970, unless a person asks for it; 0 ends it.

        INVALID if that is later than MAX_HOLD from now.
        """
        if self.record is not None and self.record.progress is None:
            self._clock.read()
        if not math.isfinite(until) or until > self._clock.now() + MAX_HOLD:
            remedy = f"hold for at most {MAX_HOLD / 86400:g} days"
            raise MachineError("the hold would be too long", kind=ErrorKind.INVALID, remedy=remedy)
        await self._post(HoldRequested(until), may_fail=True)

    # ---- events

    def _is_news(self, offer: ReleaseOffer | None) -> bool:
        """Return whether an offer may change something, so that repeated ones cost nothing."""
        record = self.record
        if record is None or record.progress is not None:
            return record is not None
        if offer is None or offer.release.sha256 == record.slots.current.sha256:
            return False
        return offer.explicit or not record.is_quarantined(offer.release)

    async def _post(self, event: Event, *, may_fail: bool = False) -> None:
        """Deliver an event, and wait until its decision is stored. With `may_fail`, an error of the disk is raised."""
        if self.record is None:
            raise MachineError(
                f"{self._name} cannot be updated: {self.problem or 'it is not installed'}",
                kind=ErrorKind.PRECONDITION,
                remedy="install it: see `machine-agent --help`",
            )
        if not self._runs:
            raise MachineError(
                f"{self._name} cannot be updated now: the updates of machine-agent have failed, and are started again",
                kind=ErrorKind.UNAVAILABLE,
                remedy="see `machine agent status`, and try again",
            )
        posted = _Posted(event, may_fail=may_fail)
        await self._send.send(posted)
        await posted.done.wait()
        if posted.error is not None:
            raise MachineError(
                f"the record of {self._name} cannot be stored: {posted.error}",
                kind=ErrorKind.UNAVAILABLE,
                remedy="check the disk, and try again",
            )

    async def _process(self, nursery: trio.Nursery, posted: _Posted) -> None:
        try:
            await self._deliver(nursery, posted.event, may_fail=posted.may_fail)
        except OSError as error:
            posted.error = error
        finally:
            posted.done.set()

    async def _deliver(self, nursery: trio.Nursery, event: Event, *, may_fail: bool = False) -> None:
        """Store what an event leads to, and begin its action. OSError only with `may_fail`; otherwise try again."""
        assert self.record is not None
        if self.record.progress is None:
            self._clock.read()
        while True:
            decision = advance(self.record, event, self._clock.now())
            _log_decision(self.record, event, decision)
            try:
                if decision.record != self.record:
                    await self._run_blocking(partial(store.save, self._layout.record(self._name), decision.record))
                break
            except OSError as error:
                self._note(f"the record cannot be stored: {error}")
                if may_fail:
                    raise
                full = error.errno in _FULL
                if full and (progress := self.record.progress) is not None and progress.step is UpdateStep.TRIAL:
                    await self._stop_trial(progress.target)
                    if decision.action is not UpdateStep.ROLL_BACK:
                        event = Failed(UpdateStep.TRIAL, progress.target.sha256, _FULL_REASON, permanent=True)
                if not (full and await self._free_reserve()):
                    await trio.sleep(self._clock.trio_seconds(RETRY))
        before, self.record = self.record, decision.record
        self._note("")
        if before != decision.record:
            _log_progress(before, decision.record)
            self._gate.ended(before, decision.record)
            if decision.record.progress is None or decision.record.progress.step is not UpdateStep.WAIT:
                self.waiting = ()
            self._notice()
        await self._act(nursery, decision)

    async def _stop_trial(self, release: Release) -> None:
        """Stop a release on trial that may have filled the disk, because it might also take the space that is made."""
        assert self.record is not None
        await self._end_action()
        try:
            await self._program.stop(_FULL_REASON)
        except MachineError as error:
            _log.warning("a release that may fill the disk cannot be stopped", program=self._name, error=str(error))
        if (await self._program.facts()).sha256 == release.sha256:
            # An agent ends here. The launcher cannot count another start on a full disk, and starts the older release.
            await self._program.start(self.record.slots.current.sha256)

    async def _free_reserve(self) -> bool:
        try:
            freed: bool = await self._run_blocking(partial(disk.free_reserve, self._layout))
        except OSError:
            return False
        return freed

    def _deadline(self, record: UpdateRecord) -> float:
        """Return when the current step must be decided about, as a time of Trio's clock."""
        if (progress := record.progress) is None:
            return math.inf
        deadline = progress.deadline
        if progress.pausing:
            deadline += random.uniform(0, JITTER) * pause(progress.attempts)  # `since` may be from a wrong clock
        return self._clock.trio_time(deadline)

    def _notice(self) -> None:
        self._changed.announce()

    def _note(self, problem: str) -> None:
        if problem and problem != self.problem:
            _log.error("the update cannot go on", program=self._name, problem=problem)
        if problem != self.problem:
            self.problem = problem
            self._notice()

    async def _load(self) -> UpdateRecord | None:
        try:
            loaded = await self._run_blocking(partial(store.load, self._layout.record(self._name)))
        except MachineError as error:
            return await self._rebuild(str(error))
        if loaded.report:
            _log.warning("the copy of a record is used", program=self._name, problem=loaded.report)
        record: UpdateRecord | None = loaded.record
        return record

    async def _rebuild(self, reason: str) -> UpdateRecord | None:
        try:
            record: UpdateRecord | None = await self._run_blocking(
                partial(disk.rebuild, self._layout, self._name, self._clock.now())
            )
        except OSError as error:
            reason, record = f"{reason}; {error}", None
        if record is None:
            self._note(reason)
            return None
        _log.error("the record is lost, and is made again from the links", program=self._name, error=reason)
        try:
            await self._run_blocking(partial(store.save, self._layout.record(self._name), record))
        except OSError as error:
            self._note(f"the record cannot be stored: {error}")
        return record

    # ---- actions

    async def _act(self, nursery: trio.Nursery, decision: UpdateDecision) -> None:
        """End the action in progress and begin that of a decision."""
        if decision.action is Action.NOTHING:
            return
        await self._end_action()
        if decision.action is Action.PAUSE:
            return
        self._scope, self._ended = trio.CancelScope(), trio.Event()
        nursery.start_soon(self._carry_out, decision, self._scope, self._ended)

    async def _end_action(self) -> None:
        self._scope.cancel()
        await self._ended.wait()

    async def _carry_out(self, decision: UpdateDecision, scope: trio.CancelScope, ended: trio.Event) -> None:
        record, action = decision
        try:
            with scope:
                if action is Action.CLEAN:
                    await self._clean()
                elif action is UpdateStep.WAIT:
                    await self._wait(record)
                elif action in _WATCHED:
                    await self._watch(record)
                else:
                    assert isinstance(action, UpdateStep)
                    await self._step(action, record)
        finally:
            ended.set()

    async def _step(self, step: UpdateStep, record: UpdateRecord) -> None:
        sha256 = subject(record).sha256
        event: Event = Succeeded(step, sha256)
        try:
            if refusal := await self._gate.before(step, record):
                raise StepFailedError(refusal)
            await self._actions.carry_out(step, record)
        except StepFailedError as error:
            event = Failed(step, sha256, error.reason, error.permanent)
        except Exception as error:
            # A bug in the agent: the step is repeated later, and everything else continues.
            _log.exception("a step of the update has failed unexpectedly", program=self._name, step=step.value)
            event = Failed(step, sha256, f"internal error: {type(error).__name__}")
        await self._post(event)

    async def _clean(self) -> None:
        while True:
            assert self.record is not None
            try:
                await self._actions.clean(self.record)
                return
            except (OSError, MachineError) as error:
                self._note(f"the update cannot be completed: {error}")
                await trio.sleep(self._clock.trio_seconds(RETRY))

    # ---- WAIT

    async def _wait(self, record: UpdateRecord) -> None:
        """Deliver WindowOpened when maintenance is allowed, and again while that leads to nothing."""
        progress = record.progress
        assert progress is not None
        requested = progress.target.sha256 == self._requested
        while True:
            changed, permission, hooks = self._changed.next, self._permission.change(), self._hooks.changed()
            again = ASK_AGAIN
            now = self._clock.now()
            if obstacle := self._program.obstacle():
                self._wait_for(obstacle)
            elif self.record is not None and is_held(self.record, now) and not progress.explicit:
                self._wait_for("a person holds updates")
                again = min(again, self.record.hold_until - now)
            else:
                requested = progress.target.sha256 == self._requested
                offline = (await self._program.facts()).offline  # before the decision, because this takes time
                verdict = await self._gate.may_switch(record, requested)
                if verdict.allowed:
                    changed = self._changed.next
                    await self._post(WindowOpened(offline))
                else:
                    self._wait_for(*verdict.reasons)
                    if verdict.until is not None:
                        again = min(again, max(1.0, verdict.until - self._clock.wall()))
            await self._first(again, permission, hooks, self._program.change, changed.wait)

    def _wait_for(self, *reasons: str) -> None:
        waiting = waits(self.waiting, reasons, self._clock.now())
        if waiting != self.waiting:
            _log.info("the update waits", program=self._name, reason="; ".join(reasons))
            self.waiting = waiting
            self._notice()

    async def _first(self, seconds: float, *changes: Callable[[], Awaitable[None]]) -> None:
        """Wait until one of the changes has happened, or the time has passed."""
        with trio.move_on_after(self._clock.trio_seconds(seconds)):
            async with trio.open_nursery() as nursery:

                async def wait(change: Callable[[], Awaitable[None]]) -> None:
                    await change()
                    nursery.cancel_scope.cancel()

                for change in changes:
                    nursery.start_soon(wait, change)

    # ---- TRIAL and RECOVER

    async def _watch(self, record: UpdateRecord) -> None:
        """Start the release, and deliver its starts and what is observed of it."""
        release = subject(record)
        assert record.progress is not None
        step = record.progress.step
        started = announced = False
        while True:
            await self._count_starts(release.sha256)
            if not started:
                try:
                    await self._program.start(release.sha256)
                    started = True
                    if not announced:
                        announced = True
                        self._gate.started(record)
                except MachineError as error:
                    await self._post(Failed(step, release.sha256, str(error)))
            facts = await self._program.facts()
            if facts.sha256:
                await self._post(_observed(facts, self._clock.speed))
            else:
                await self._post(Failed(step, release.sha256, "it does not run"))
            if facts.sha256 not in ("", release.sha256):  # it was started before the links were changed
                started = False
            await self._first(OBSERVE, self._program.change)

    async def _count_starts(self, sha256: str) -> None:
        """Deliver the starts that the launcher has counted."""
        try:
            launch = await self._run_blocking(partial(links.read, self._layout, self._name))
        except OSError as error:
            self._note(f"the starts cannot be read: {error}")
            return
        if not launch.on_trial:
            return
        while self.record is not None and self.record.progress is not None:
            before = self.record.progress
            if before.attempts >= launch.starts:
                return
            await self._post(Started(sha256))
            if self.record.progress == before:
                return


def _observed(facts: ProgramFacts, speed: float) -> ProgramObserved:
    return ProgramObserved(facts.sha256, facts.up * speed, facts.served, facts.configured, facts.offline)


def _log_decision(before: UpdateRecord, event: Event, decision: UpdateDecision) -> None:
    """Log what follows from an event; the fields of the event say why."""
    old, new = before.progress, decision.record.progress
    _log.debug(
        "decided about the update",
        program=before.program,
        cause=type(event).__name__,
        reason=getattr(event, "reason", "") or (new.error if new is not None else ""),
        before=old.step.value if old is not None else "none",
        after=new.step.value if new is not None else "none",
        action=decision.action.value,
        version=new.target.version if new is not None else decision.record.slots.current.version,
    )


def _log_progress(before: UpdateRecord, after: UpdateRecord) -> None:
    """Log the next step, and how an update ended."""
    old, new = before.progress, after.progress
    if new is not None and (old is None or (new.step, new.target) != (old.step, old.target)):
        _log.info("the update goes on", program=after.program, step=new.step.value, version=new.target.version)
    if new is not None and new.error and (old is None or (new.pausing and not old.pausing)):
        _log.warning("a step of the update has failed", program=after.program, step=new.step.value, error=new.error)
    if after.history[-1:] != before.history[-1:]:
        _log_outcome(after.program, after.history[-1])


def _log_outcome(program: str, outcome: UpdateOutcome) -> None:
    _log.info(
        "an update has ended", program=program, result=outcome.result.value,
        version=outcome.version_to, before=outcome.version_from, reason=outcome.reason,
    )  # fmt: skip

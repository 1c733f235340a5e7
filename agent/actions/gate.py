"""Permission and hooks of the updates of one program: what must be asked before a step, and what is run after it."""

from __future__ import annotations

from typing import Final, NamedTuple

import structlog

from agent.actions.clock import Clock
from agent.actions.program import RestartPermission, UpdateHooks
from agent.hooks.moments import HookedChange, HookMoment
from agent.maintenance.decide import MaintenanceVerdict
from agent.update.record import UpdateOutcome, UpdateProgress, UpdateRecord, UpdateResult, UpdateStep
from agent.update.steps import pause, subject

_STARTED: Final = {UpdateStep.TRIAL: HookMoment.AFTER_SWITCH, UpdateStep.RECOVER: HookMoment.AFTER_ROLLBACK}
_log = structlog.get_logger("agent.update")


class _Refused(NamedTuple):
    """A hook before the switch that has refused, and when it is asked again, by the clock of the driver."""

    sha256: str
    reason: str
    attempts: int
    again: float
    revision: int


class HookGate:
    """Asks for permission and runs hooks for the program `name`."""

    def __init__(self, name: str, permission: RestartPermission, hooks: UpdateHooks, clock: Clock) -> None:
        self._name, self._permission, self._hooks, self._clock = name, permission, hooks, clock
        self._refused: _Refused | None = None

    def hurry(self) -> None:
        """Ask a hook that has refused again now: a person requested it."""
        if self._refused is not None:
            self._refused = self._refused._replace(again=0.0)

    async def may_switch(self, record: UpdateRecord, requested: bool) -> MaintenanceVerdict:
        """Return whether the switch may begin now. Its hook runs once everything else allows it.

        A hook that refuses is asked again after a pause, which grows up to an hour, or when hooks have changed. After
        the longest deferral it still runs, but its refusal does not count.
        """
        progress = record.progress
        assert progress is not None
        verdict = await self._ask(progress, requested)
        _log.debug(
            "decided about maintenance",
            program=self._name,
            allowed=verdict.allowed,
            requested=requested,
            reason="; ".join(verdict.reasons) or "maintenance allows it",
        )
        if not verdict.allowed:
            return verdict
        refused = self._refused
        if refused is not None and refused.sha256 != progress.target.sha256:
            refused = None
        if refused is not None and self._must_wait(refused) and not self._is_overdue(verdict):
            return self._refusal(verdict, refused)
        revision = self._hooks.revision
        answer = await self._hooks.before(HookMoment.BEFORE_SWITCH, _change(record))
        if answer.refusal and not self._is_overdue(verdict):
            attempts = refused.attempts + 1 if refused is not None else 1
            again = self._clock.now() + pause(attempts)
            self._refused = _Refused(progress.target.sha256, answer.refusal, attempts, again, revision)
            return self._refusal(verdict, self._refused)
        self._ignore(answer.refusal)
        self._refused = None
        if not answer.ran:
            return verdict
        return await self._ask(progress, requested)  # the hook may have taken minutes

    async def before(self, step: UpdateStep, record: UpdateRecord) -> str:
        """Run the hook before a step; return why the step must wait. A roll-back never waits."""
        if step is UpdateStep.ROLL_BACK:
            self._ignore((await self._hooks.before(HookMoment.BEFORE_ROLLBACK, _change(record))).refusal)
        elif step is UpdateStep.RESOLVE and record.progress is not None:
            answer = await self._hooks.before(HookMoment.BEFORE_UPDATE, _change(record))
            if answer.refusal and not self._is_overdue(await self._ask(record.progress, requested=False)):
                return answer.refusal
            self._ignore(answer.refusal)
        return ""

    def started(self, record: UpdateRecord) -> None:
        """Run the hook after the release of a trial, or the one before it, was started."""
        progress = record.progress
        if progress is not None and progress.step in _STARTED:
            result = UpdateResult.ROLLED_BACK.value if progress.step is UpdateStep.RECOVER else ""
            self._hooks.after(_STARTED[progress.step], _change(record), result, progress.error if result else "")

    def ended(self, before: UpdateRecord, after: UpdateRecord) -> None:
        """Run the hook after an update, if the update of `before` has ended in `after`."""
        outcome = outcome_of(before, after)
        if outcome is not None:
            change = HookedChange(self._name, outcome.version_from, outcome.version_to)
            self._hooks.after(HookMoment.AFTER_UPDATE, change, outcome.result.value, outcome.reason)

    async def _ask(self, progress: UpdateProgress, requested: bool) -> MaintenanceVerdict:
        return await self._permission.may_restart(self._name, self._clock.shown_at(progress.began), requested)

    def _is_overdue(self, verdict: MaintenanceVerdict) -> bool:
        return verdict.latest is not None and self._clock.wall() >= verdict.latest

    def _must_wait(self, refused: _Refused) -> bool:
        return self._clock.now() < refused.again and refused.revision == self._hooks.revision

    def _refusal(self, verdict: MaintenanceVerdict, refused: _Refused) -> MaintenanceVerdict:
        again = self._clock.shown_at(refused.again)
        return MaintenanceVerdict(False, refused.reason, verdict.since, again, verdict.latest)

    def _ignore(self, refusal: str) -> None:
        if refusal:
            _log.warning("a hook refuses, but does not count now", program=self._name, reason=refusal)


def outcome_of(before: UpdateRecord, after: UpdateRecord) -> UpdateOutcome | None:
    """Return how the update in progress in `before` ended, if it is over in `after`."""
    progress = before.progress
    if progress is None or (after.progress is not None and after.progress.began == progress.began):
        return None
    return next((outcome for outcome in reversed(after.history) if outcome.began == progress.began), None)


def _change(record: UpdateRecord) -> HookedChange:
    """Return what a step is about: from the current release to the target, or back."""
    assert record.progress is not None
    target, current = record.progress.target, record.slots.current
    source = current if subject(record) == target else target
    return HookedChange(record.program, source.version, subject(record).version)

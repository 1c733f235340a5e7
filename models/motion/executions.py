"""The executions of a motion service: what moves now, and what did in the last 24 hours."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import trio

from engine import MotionPlan, PlanHistory, PlanState, PlanStatus, PlanStatusWithID, PlanStep, PlanWithStatus
from schema import ErrorKind, MachineError

KEPT_FOR: Final = timedelta(hours=24)
KEPT: Final = 1000  # executions; older ones are forgotten earlier
MAX_REASON: Final = 1000  # characters


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Execution:
    """A motion of a component; `states` are those of its newest plan, oldest first."""

    component: str
    mover: str  # the arm, gantry or base
    states: list[PlanStatus]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    plan_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    steps: Sequence[PlanStep] = ()
    earlier: list[PlanWithStatus] = field(default_factory=list)  # plans that were replaced, oldest first
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    reason: str = ""  # why it is cancelled
    ended: trio.Event = field(default_factory=trio.Event)

    @property
    def state(self) -> PlanState:
        """The current state."""
        return self.states[-1].state

    def cancel(self, reason: str) -> None:
        """Cancel it; its caller gets the reason."""
        self.reason = self.reason or reason
        self.scope.cancel()

    def replan(self, steps: Sequence[PlanStep], reason: str) -> None:
        """Replace the plan, which has failed for this reason."""
        self.states.append(PlanStatus(PlanState.FAILED, utc_now(), reason[:MAX_REASON]))
        self.earlier.append(self.plan())
        self.plan_id, self.steps = str(uuid.uuid4()), steps
        self.states = [PlanStatus(PlanState.IN_PROGRESS, utc_now())]

    def statuses(self) -> list[PlanStatusWithID]:
        """Return the messages with the states of its plans, oldest first."""
        plans = [*self.earlier, self.plan()]
        return [
            PlanStatusWithID(each.plan.id, execution_id=self.id, status=each.status, component_name=self.component)
            for each in plans
            if each.plan is not None
        ]

    def plan(self) -> PlanWithStatus:
        """Return the message with its plan."""
        plan = MotionPlan(self.plan_id, execution_id=self.id, steps=self.steps, component_name=self.component)
        return PlanWithStatus(plan, self.states[-1], self.states[:-1])


class Executions:
    """Executions, newest last. `now` returns the time of day."""

    def __init__(self, now: Callable[[], datetime] = utc_now) -> None:
        self._all: deque[Execution] = deque(maxlen=KEPT)
        self._running: dict[str, Execution] = {}  # by arm or gantry
        self._now = now

    async def replace(self, mover: str) -> None:
        """End the execution of an arm or gantry for a newer one."""
        while (running := self._running.get(mover)) is not None:
            running.cancel("a newer motion has replaced this one")
            await running.ended.wait()

    @contextmanager
    def running(self, component: str, mover: str) -> Iterator[Execution]:
        """Record an execution around the block, whose cancellation by `stop` becomes an error (CANCELLED)."""
        execution = Execution(component, mover, [PlanStatus(PlanState.IN_PROGRESS, self._now())])
        self._all.append(execution)
        self._running[mover] = execution
        state, reason = PlanState.STOPPED, "the caller has left"
        try:
            with execution.scope:
                yield execution
                state, reason = PlanState.SUCCEEDED, ""
            if execution.scope.cancelled_caught:
                reason = execution.reason
                raise MachineError(execution.reason, kind=ErrorKind.CANCELLED)
        except Exception as error:
            if not execution.scope.cancelled_caught:
                state, reason = PlanState.FAILED, str(error)[:MAX_REASON]
            raise
        finally:
            execution.states.append(PlanStatus(state, self._now(), reason or None))
            if self._running.get(mover) is execution:
                del self._running[mover]
            execution.ended.set()

    async def stop(self, component: str | None = None) -> bool:
        """Stop the executions of a component, or all; return whether there were any, when they have ended."""
        stopped = [
            execution
            for execution in self._running.values()
            if component is None or component in (execution.component, execution.mover)
        ]
        for execution in stopped:
            execution.cancel("stopped")
        for execution in stopped:
            await execution.ended.wait()
        return bool(stopped)

    @property
    def moving(self) -> bool:
        """Whether there is an execution in progress."""
        return bool(self._running)

    def statuses(self, *, only_active: bool) -> list[PlanStatusWithID]:
        """Return the states of executions, oldest first."""
        self._forget()
        return [
            status
            for execution in self._all
            for status in execution.statuses()
            if not only_active or (status.status is not None and status.status.state is PlanState.IN_PROGRESS)
        ]

    def history(self, component: str, execution_id: str, *, last_only: bool = False) -> PlanHistory:
        """Return the plans of an execution, or of the component's newest; NOT_FOUND if there is none."""
        self._forget()
        for execution in reversed(self._all):
            if component in (execution.component, execution.mover) and execution_id in ("", execution.id):
                return PlanHistory(execution.plan(), () if last_only else tuple(execution.earlier))
        what = f"no execution {execution_id!r}" if execution_id else "no execution"
        raise MachineError(
            f"{what} of {component!r} in the last 24 hours",
            kind=ErrorKind.NOT_FOUND,
            remedy="list them with ListPlanStatuses",
        )

    def _forget(self) -> None:
        oldest = self._now() - KEPT_FOR
        while self._all and self._all[0].state is not PlanState.IN_PROGRESS:
            changed = self._all[0].states[-1].timestamp
            if changed is None or changed >= oldest:
                return
            self._all.popleft()

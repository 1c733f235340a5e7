"""A control loop that pursues the newest goal and rests between goals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import structlog
import trio

from hal.ports import Ticks
from models.common.motion import run_shielded, superseded
from schema import MachineError


@dataclass(eq=False)
class Goal:
    """A signed speed to keep (`position` is None), or a position at which to stop, with the speed (above 0) of the way.

    `period` is the period of the control loop in seconds.
    """

    speed: float
    period: float
    position: float | None = None
    ended: trio.Event = field(default_factory=trio.Event)
    error: MachineError | None = None

    def end(self, error: MachineError | None = None) -> None:
        """Mark the goal as reached, or as failed with `error`."""
        if not self.ended.is_set():
            self.error = error
            self.ended.set()


class ControlLoop:
    """One control loop; start `run` in the driver's nursery.

    `begin()` is awaited when the loop starts, `step(goal, periods)` once per period (`periods` is above 1 if some were
    missed) until it returns True (reached), and `rest()` when the loop ends for any reason. A newer goal replaces the
    older one between two periods, without `rest()`, and the older one ends with CANCELLED. A MachineError of `begin` or
    `step` ends the goal with that error; other exceptions end `run`.
    """

    def __init__(
        self,
        *,
        ticks: Callable[[float], AbstractAsyncContextManager[Ticks]],
        begin: Callable[[], Awaitable[None]],
        step: Callable[[Goal, int], Awaitable[bool]],
        rest: Callable[[], Awaitable[None]],
        log: structlog.stdlib.BoundLogger,
    ) -> None:
        self._ticks = ticks
        self._begin = begin
        self._step = step
        self._rest = rest
        self._log = log
        self._goal: Goal | None = None
        self._current: Goal | None = None  # the goal of the current period
        self._goal_set = trio.Event()
        self._rested = trio.Event()  # of the current or last loop
        self._rested.set()
        self._scope = trio.CancelScope()

    @property
    def goal(self) -> Goal | None:
        """The current goal; None at rest."""
        return self._goal

    def pursue(self, goal: Goal) -> None:
        """Pursue `goal` from the next period on, replacing the current goal."""
        self._replace(goal)
        self._goal_set.set()

    async def wait(self, goal: Goal, halt: Callable[[], Awaitable[None]] | None = None) -> None:
        """Wait until a pursued goal has ended; raise its error. Cancellation stops the motion.

        `halt` stops it in that case, if `stop` is not sufficient.
        """
        try:
            await goal.ended.wait()
        finally:
            if self._goal is goal:
                await run_shielded(halt or self.stop)
        if goal.error is not None:
            raise goal.error

    async def stop(self) -> None:
        """End the current goal and wait until the loop is at rest."""
        self._replace(None)
        rested = self._rested
        self._scope.cancel()
        await rested.wait()

    def _replace(self, goal: Goal | None) -> None:
        if self._goal is not None:
            self._goal.end(superseded())
        self._goal = goal

    async def run(self) -> None:
        """Pursue goals until cancelled."""
        try:
            while True:
                await self._goal_set.wait()
                self._goal_set = trio.Event()
                if self._goal is None:
                    continue
                self._rested = trio.Event()
                try:
                    await self._run_until_idle()
                finally:
                    self._rested.set()
        finally:
            self._replace(None)

    async def _run_until_idle(self) -> None:
        """Run the loop until there is no goal, then rest."""
        ended_goal: Goal | None = None
        error: MachineError | None = None
        self._scope = trio.CancelScope()
        try:
            with self._scope:
                self._current = self._goal
                await self._begin()
                while ended_goal is None and (goal := self._goal) is not None:
                    ended_goal = await self._run_periods(goal.period)
        except MachineError as caught:
            ended_goal, error = self._current, caught
        finally:
            error = await self._come_to_rest() or error
        if error is not None:
            self._log.error("stopped because of an error", error=str(error))
        if ended_goal is not None and ended_goal is self._goal:
            self._goal = None
            ended_goal.end(error)

    async def _run_periods(self, period: float) -> Goal | None:
        """Run periods of one length; return a reached goal, or None if there is no goal or its period differs."""
        async with self._ticks(period) as ticks:
            async for periods in ticks:
                goal = self._current = self._goal
                if goal is None or goal.period != period:
                    return None
                if await self._step(goal, periods):
                    return goal
        return None

    async def _come_to_rest(self) -> MachineError | None:
        try:
            await run_shielded(self._rest)
        except MachineError as error:
            return error
        return None

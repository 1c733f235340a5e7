"""Pursuit: a control loop that works towards the newest goal, and rests between goals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import structlog
import trio

from hal.ports.ticks import Ticks
from runtime.builtin.motion import at_rest, overtaken
from schema.errors import MachineError


@dataclass(eq=False)
class Goal:
    """A speed to keep (signed; `place` is None), or a place to come to rest at with a speed above 0.

    The loop beats every `period` seconds.
    """

    speed: float
    period: float
    place: float | None = None
    ended: trio.Event = field(default_factory=trio.Event)
    error: MachineError | None = None

    def end(self, error: MachineError | None = None) -> None:
        """Reached, or given up because of `error`."""
        if not self.ended.is_set():
            self.error = error
            self.ended.set()


class Pursuit:
    """One loop; `run` it in the driver's nursery.

    `begin()` is awaited when a loop starts, `step(goal, beats)` once a beat (`beats` is 1, or more when some were
    missed) until it returns True (reached), `rest()` when the loop ends for whatever reason. A newer goal replaces the
    older one between two beats, without a rest in between, and the older one ends with CANCELLED. A MachineError of
    `begin` or `step` ends the goal with that error; others end `run`.
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
        self._current: Goal | None = None  # whose beat it is
        self._wanted = trio.Event()
        self._rested = trio.Event()  # of the loop that runs now, or ran last
        self._rested.set()
        self._scope = trio.CancelScope()

    @property
    def goal(self) -> Goal | None:
        """What is being worked towards now."""
        return self._goal

    def pursue(self, goal: Goal) -> None:
        """Work towards `goal` from the next beat on."""
        self._replace(goal)
        self._wanted.set()

    async def wait(self, goal: Goal, halt: Callable[[], Awaitable[None]] | None = None) -> None:
        """Wait until a goal that was pursued has ended; raises its error. A cancelled caller leaves nothing moving.

        `halt` brings it to rest then, if that takes more than `stop`.
        """
        try:
            await goal.ended.wait()
        finally:
            if self._goal is goal:
                await at_rest(halt or self.stop)
        if goal.error is not None:
            raise goal.error

    async def stop(self) -> None:
        """Give up the goal; returns when the loop rests."""
        self._replace(None)
        rested = self._rested
        self._scope.cancel()
        await rested.wait()

    def _replace(self, goal: Goal | None) -> None:
        if self._goal is not None:
            self._goal.end(overtaken())
        self._goal = goal

    async def run(self) -> None:
        """Pursue goals until cancelled; then rest."""
        try:
            while True:
                await self._wanted.wait()
                self._wanted = trio.Event()
                if self._goal is None:
                    continue
                self._rested = trio.Event()
                try:
                    await self._chase()
                finally:
                    self._rested.set()
        finally:
            self._replace(None)

    async def _chase(self) -> None:
        """Until there is no goal any more; then rest."""
        ended: Goal | None = None
        error: MachineError | None = None
        self._scope = trio.CancelScope()
        try:
            with self._scope:
                self._current = self._goal
                await self._begin()
                while ended is None and (goal := self._goal) is not None:
                    ended = await self._beats(goal.period)
        except MachineError as caught:
            ended, error = self._current, caught
        finally:
            error = await self._come_to_rest() or error
        if error is not None:
            self._log.error("stopped by a failure", error=str(error))
        if ended is not None and ended is self._goal:
            self._goal = None
            ended.end(error)

    async def _beats(self, period: float) -> Goal | None:
        """Beat after beat of `period`; the goal that was reached, or None to look again at goal and period."""
        async with self._ticks(period) as beats:
            async for passed in beats:
                goal = self._current = self._goal
                if goal is None or goal.period != period:
                    return None
                if await self._step(goal, passed):
                    return goal
        return None

    async def _come_to_rest(self) -> MachineError | None:
        try:
            await at_rest(self._rest)
        except MachineError as error:
            return error
        return None

"""A job: waits for its schedule, calls its method and records the outcome."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import trio

from runtime.parts.jobs.clock import WallClock
from runtime.parts.jobs.schedule import Continuous, Cron, Every, Schedule
from runtime.parts.jobs.timeline import SET, Timeline, later
from schema import MachineError

RECORDED_RUNS: Final = 10  # runs recorded for each outcome; reference value


@dataclass(slots=True)
class History:
    """Start times of the latest successes and failures, oldest first."""

    succeeded: deque[datetime] = field(default_factory=lambda: deque(maxlen=RECORDED_RUNS))
    failed: deque[datetime] = field(default_factory=lambda: deque(maxlen=RECORDED_RUNS))
    last_error: str = ""
    waits_for: Callable[[], datetime | None] | None = None  # returns the time, by the clock as it is set now
    running: bool = False

    @property
    def next_run(self) -> datetime | None:
        """When the job runs next; None if it is not waiting for a time."""
        return self.waits_for() if self.waits_for is not None else None


class JobRunner:
    """Runs one job until cancelled.

    `call` does the work and may raise MachineError; `clock` is the one of cron schedules; `report` is called after each
    run, with the error or None.
    """

    def __init__(
        self,
        schedule: Schedule,
        call: Callable[[], Awaitable[object]],
        history: History,
        clock: WallClock,
        report: Callable[[MachineError | None], None],
    ) -> None:
        self._schedule = schedule
        self._call = call
        self._history = history
        self._clock = clock
        self._report = report

    async def run(self) -> None:
        """Run by the schedule. Returns only if the schedule has no further time."""
        match self._schedule:
            case Every(seconds):
                await self._every(seconds)
            case Cron() as cron:
                await self._by_clock(cron)
            case Continuous() as continuous:
                failures = 0
                while True:
                    failures = 0 if await self._run_once() else failures + 1
                    await trio.sleep(continuous.pause(failures))

    async def _every(self, seconds: float) -> None:
        history, due = self._history, trio.current_time()
        while True:
            due += seconds
            history.waits_for = self._wall_time(due)
            await trio.sleep_until(due)
            history.waits_for = None
            due = max(due, trio.current_time() - seconds)  # catch up on at most one late run
            await self._run_once()

    def _wall_time(self, due: float) -> Callable[[], datetime]:
        """Return a function that returns the wall time of `due`; it is the same until the clock is set."""
        shown = self._clock.now()

        def moment() -> datetime:
            nonlocal shown
            current = later(self._clock.now(), timedelta(seconds=max(0.0, due - trio.current_time())))
            if abs(current - shown) >= SET:
                shown = current
            return shown

        return moment

    async def _by_clock(self, cron: Cron) -> None:
        history, clock = self._history, self._clock
        line = Timeline(cron, clock.now(), trio.current_time())
        while line.planned is not None:
            history.waits_for = lambda: line.next_run(clock.now())
            await clock.wait_until(line.planned)
            if line.look(clock.now(), trio.current_time()):
                history.waits_for = None
                await self._run_once()
                line.ran(clock.now(), trio.current_time())

    async def _run_once(self) -> bool:
        history, began = self._history, self._clock.now()
        history.running = True
        try:
            await self._call()
        except MachineError as error:
            history.failed.append(began)
            history.last_error = str(error)
            self._report(error)
            return False
        finally:
            history.running = False
        history.succeeded.append(began)
        self._report(None)
        return True

"""A job: waits for its schedule, calls its method and records the outcome."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import trio

from runtime.parts.jobs.schedule import Continuous, Cron, Every, Schedule
from schema.errors import MachineError

RECORDED_RUNS: Final = 10  # runs recorded for each outcome; reference value
LONGEST_SLEEP: Final = 60.0  # seconds until a waiting cron job reads the clock again, which may have been set


@dataclass(slots=True)
class History:
    """Start times of the latest successes and failures, oldest first."""

    succeeded: deque[datetime] = field(default_factory=lambda: deque(maxlen=RECORDED_RUNS))
    failed: deque[datetime] = field(default_factory=lambda: deque(maxlen=RECORDED_RUNS))
    last_error: str = ""
    next_run: datetime | None = None  # None if the job is not waiting for a time
    running: bool = False


class JobRunner:
    """Runs one job until cancelled.

    `call` does the work and may raise MachineError; `now` returns the local time with time zone; `report` is called
    after each run, with the error or None.
    """

    def __init__(
        self,
        schedule: Schedule,
        call: Callable[[], Awaitable[object]],
        history: History,
        now: Callable[[], datetime],
        report: Callable[[MachineError | None], None],
    ) -> None:
        self._schedule = schedule
        self._call = call
        self._history = history
        self._now = now
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
        due = trio.current_time()
        while True:
            due += seconds
            self._history.next_run = self._now() + timedelta(seconds=max(0.0, due - trio.current_time()))
            await trio.sleep_until(due)
            self._history.next_run = None
            due = max(due, trio.current_time() - seconds)  # catch up on at most one late run
            await self._run_once()

    async def _by_clock(self, cron: Cron) -> None:
        history = self._history
        while (due := cron.after(self._now())) is not None:
            history.next_run = due
            while (left := (due - self._now()).total_seconds()) > 0:  # noqa: ASYNC110 - the clock may be set in the meantime
                await trio.sleep(min(left, LONGEST_SLEEP))
            history.next_run = None
            await self._run_once()

    async def _run_once(self) -> bool:
        history, began = self._history, self._now()
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

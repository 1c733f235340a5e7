"""The clock by which cron jobs run: local time in the computer's zone, which people and NTP may set."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Final, Protocol

import structlog
import trio

from hal import ClockChanges
from support import ChangeSignal
from support.clock import LOCALTIME, device_zone
from support.files import follow_files
from telemetry.logs.logger_names import JOBS

LONGEST_WAIT: Final = 600.0  # seconds; NTP slews a clock by up to 0.05 %, so a job runs at most 0.3 s late
NOTABLE: Final = 60.0  # seconds by which the clock is set before it is logged: the resolution of schedules

_log = structlog.get_logger(JOBS)


def utc_now() -> datetime:
    """Return the time of the computer's clock."""
    return datetime.now(UTC)


class WallClock(Protocol):
    """Local time, and waiting for it."""

    @property
    def notice(self) -> str:
        """How the clock was set last, since the start; empty if it was not."""
        ...

    def now(self) -> datetime:
        """Return the local time with its time zone, whose offset changes with daylight saving time."""
        ...

    async def wait_until(self, moment: datetime) -> None:
        """Wait until `moment`, or shorter: the clock or the zone may have been set."""
        ...

    async def run(self) -> None:
        """Notice that the clock or the zone is set, until cancelled."""
        ...


class SystemClock:
    """The clock and the time zone of this computer. `run` notices that one of them was set."""

    def __init__(self, wall: Callable[[], datetime] = utc_now) -> None:
        self._wall = wall
        self._zone: tzinfo = UTC
        self._set = ChangeSignal()
        self._mark = (trio.current_time(), wall())
        self.notice = ""  # how the clock was set last, since the start; empty if it was not
        self._read_zone()

    def now(self) -> datetime:
        """Return the local time with its time zone, whose offset changes with daylight saving time."""
        return self._wall().astimezone(self._zone)

    async def wait_until(self, moment: datetime) -> None:
        """Wait until `moment`, or shorter: the clock or the zone may have been set.

        Returns at once when `run` notices a change, and after LONGEST_WAIT.
        """
        left = (moment.astimezone(UTC) - self._wall()).total_seconds()
        with trio.move_on_after(max(0.0, min(left, LONGEST_WAIT))):
            await self._set.next.wait()

    async def run(self) -> None:
        """Follow changes of the clock and of the time zone until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_clock)
            if os.environ.get("TZ") is None:
                nursery.start_soon(self._follow_zone)

    async def _follow_clock(self) -> None:
        changes = ClockChanges()
        try:
            while True:
                await changes.next()
                self.clock_was_set()
        finally:
            changes.close()

    def clock_was_set(self) -> None:
        """Log and describe by how much the clock was set, and end all waits."""
        (before, wall), now = self._mark, self._wall()
        self._mark = (trio.current_time(), now)
        shift = (now - wall).total_seconds() - (self._mark[0] - before)
        if abs(shift) >= NOTABLE:
            self.notice = notice_of(shift, self.now())
            _log.warning("the clock was set", by=set_by(shift), to=self.now().isoformat(timespec="seconds"))
        self._wake()

    async def _follow_zone(self) -> None:
        def refused(path: Path | None, error: OSError) -> None:
            _log.warning("changes of the time zone are not noticed before the next start", reason=str(error))

        await follow_files([LOCALTIME], self._read_zone, refused)

    def _read_zone(self) -> None:
        zone, problem = device_zone(os.environ.get("TZ"))
        if problem:
            _log.warning("jobs run by UTC", reason=problem, remedy="run `timedatectl set-timezone Europe/Berlin`")
        self._zone = zone
        self._wake()

    def _wake(self) -> None:
        self._set.announce()


class VirtualClock:
    """A wall clock for tests: follows Trio's clock, and is set with `set`."""

    def __init__(self, start: datetime) -> None:
        self.notice = ""
        self._zone = start.tzinfo
        self._set = ChangeSignal()
        self._start, self._begin = start.astimezone(UTC), trio.current_time()

    def now(self) -> datetime:
        """Return the local time with its time zone, whose offset changes with daylight saving time."""
        return (self._start + timedelta(seconds=trio.current_time() - self._begin)).astimezone(self._zone)

    async def wait_until(self, moment: datetime) -> None:
        """Wait until `moment`, or shorter: the clock or the zone may have been set."""
        with trio.move_on_after(max(0.0, (moment.astimezone(UTC) - self.now().astimezone(UTC)).total_seconds())):
            await self._set.next.wait()

    async def run(self) -> None:
        """Notice that the clock or the zone is set, until cancelled."""
        await trio.sleep_forever()

    def set(self, moment: datetime) -> None:
        """Set the clock, and the zone to that of `moment`."""
        shift = (moment.astimezone(UTC) - self.now().astimezone(UTC)).total_seconds()
        self.notice = notice_of(shift, moment) if abs(shift) >= NOTABLE else self.notice
        self._zone = moment.tzinfo
        self._start, self._begin = moment.astimezone(UTC), trio.current_time()
        self._set.announce()


def notice_of(seconds: float, now: datetime) -> str:
    """Return the words for a clock that was set by `seconds` and shows `now` since."""
    return f"{set_by(seconds)}, to {now.isoformat(sep=' ', timespec='seconds')}"


def set_by(seconds: float) -> str:
    """Return the words for a change of the clock by `seconds`, such as `forward by 2 h`."""
    amount = abs(seconds)
    for size, unit in ((86400 * 365.25, "years"), (86400, "days"), (3600, "h"), (60, "min")):
        if amount >= 2 * size:
            return f"{'forward' if seconds > 0 else 'back'} by {amount / size:.0f} {unit}"
    return f"{'forward' if seconds > 0 else 'back'} by {amount:.0f} s"

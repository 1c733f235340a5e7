"""Schedules of jobs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cronsim import CronSim, CronSimError

from schema import ConfigError, parse_duration
from schema.document import schedule_kind
from support import doubled

FIRST_PAUSE: Final = 0.5  # seconds after the first failure of a continuous job
LONGEST_PAUSE: Final = 30.0  # seconds between attempts of a continuous job that keeps failing


@dataclass(frozen=True, slots=True)
class Every:
    """A run every `seconds`, from start to start; a run that takes longer is followed by the next immediately."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cron:
    """Runs at local times. Times that occur while the job is running are skipped.

    Changes of daylight saving time and of the clock are handled as in Debian's cron, see
    `runtime.parts.jobs.timeline`.
    """

    expression: str

    @property
    def follows_clock(self) -> bool:
        """Whether minutes or hours begin with `*`: the job has no fixed time, and follows each change of the clock."""
        minutes, hours = self.expression.split()[-5:-3]
        return minutes.startswith("*") or hours.startswith("*")

    def after(self, moment: datetime) -> datetime | None:
        """Return the first time after `moment`, in its time zone; None if there is none within 50 years.

        Without a time zone, these are local times of a zone whose offset never changes.
        """
        return next(CronSim(self.expression, moment), None)


@dataclass(frozen=True, slots=True)
class Continuous:
    """A run immediately after the previous one, or with a growing pause after failures."""

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after `failures` consecutive failures."""
        return doubled(FIRST_PAUSE, LONGEST_PAUSE, failures)


Schedule = Every | Cron | Continuous


def parse_schedule(text: str, path: str) -> Schedule:
    """Parse a schedule. Raises ConfigError at `path` for cron fields that never match or are out of range."""
    kind = schedule_kind(text)
    if kind == "continuous":
        return Continuous()
    if kind == "every":
        return Every(parse_duration(text))
    try:
        CronSim(text.upper(), datetime(2026, 1, 1))
    except CronSimError as error:
        raise ConfigError(
            path,
            f"{text!r} is not a cron schedule: {str(error).lower()}",
            value=text,
            remedy="write five fields (minute hour day month weekday) or six with the seconds first",
        ) from error
    return Cron(text.upper())

"""When a job runs next. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cronsim import CronSim, CronSimError

from schema.durations import parse_duration
from schema.errors import ConfigError
from schema.jobs import schedule_kind

FIRST_PAUSE: Final = 0.5  # seconds after the first failure of a continuous job
LONGEST_PAUSE: Final = 30.0  # seconds between tries of a continuous job that keeps failing


@dataclass(frozen=True, slots=True)
class Every:
    """Each `seconds`, counted from one start to the next; a run that takes longer is followed by the next at once."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cron:
    """By the computer's clock and time zone; a time that comes while the job still runs is skipped.

    Changes of daylight saving are treated as Debian's cron does: what falls into the hour that is left out runs right
    after it, what falls into the hour that comes twice runs once, and `*` in hours and minutes follows the clock.
    """

    expression: str

    def after(self, moment: datetime) -> datetime | None:
        """The first time after `moment` (aware) in the zone of `moment`; None if there is none in 50 years."""
        return next(CronSim(self.expression, moment), None)


@dataclass(frozen=True, slots=True)
class Continuous:
    """Again as soon as it has ended; after failures with a growing pause."""

    def pause(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row."""
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (failures - 1)) if failures else 0.0


Schedule = Every | Cron | Continuous


def parse_schedule(text: str, path: str) -> Schedule:
    """What `text` means; ConfigError at `path` for cron fields that never come true or are out of range."""
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

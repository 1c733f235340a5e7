"""Calendar windows: the times of a week at which maintenance is allowed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

EVERY_DAY: Final = frozenset(range(7))


@dataclass(frozen=True)
class MaintenanceHours:
    """Window that opens on some days of the week, in the device's time zone.

    `days` are the days on which it opens, 0 for Monday to 6 for Sunday. It closes at `end`: on the next day if `end` is
    not later than `start`, so equal times last until the next day. `start` and `end` have no time zone. Raises
    ValueError for other days, no days, or times with a time zone.

    When clocks are set forward, a `start` that is skipped is as much later as the clocks were moved, and a window that
    is skipped entirely keeps its length. When they are set back, a `start` that occurs twice means the first, an `end`
    that occurs twice the second.
    """

    start: time
    end: time
    days: frozenset[int] = EVERY_DAY

    def __post_init__(self) -> None:
        if not self.days or not self.days <= EVERY_DAY:
            raise ValueError(f"days of a window must be some of 0 to 6, not {sorted(self.days)}")
        if self.start.tzinfo or self.end.tzinfo:
            raise ValueError("times of a window must not have a time zone: they are in that of the device")


@dataclass(frozen=True)
class Opening:
    """Period during which a window is open, in seconds since 1970: from `start` to before `end`."""

    start: float
    end: float


def openings(windows: Iterable[MaintenanceHours], now: float, zone: tzinfo) -> list[Opening]:
    """Return the periods of the windows that have not ended at `now`, by start.

    Each window is represented at least by its present or next opening. `now` is in seconds since 1970.
    """
    today = datetime.fromtimestamp(now, zone).date()
    upcoming = (opening for window in windows for opening in _week(window, today, zone))
    return sorted((opening for opening in upcoming if opening.end > now), key=lambda opening: opening.start)


def _week(window: MaintenanceHours, today: date, zone: tzinfo) -> Iterator[Opening]:
    for offset in range(-2, 9):  # one opening lasts at most a day, and a change of clocks
        day = today + timedelta(days=offset)
        if day.weekday() in window.days:
            yield _opening(window, day, zone)


def _opening(window: MaintenanceHours, day: date, zone: tzinfo) -> Opening:
    first = datetime.combine(day, window.start)
    last = datetime.combine(day + timedelta(days=window.end <= window.start), window.end)
    start = first.replace(tzinfo=zone).timestamp()
    end = max(last.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    return Opening(start, end if end > start else start + (last - first).total_seconds())

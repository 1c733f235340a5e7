"""Quiet hours: times of day, in a time zone and on weekdays, in which notifications wait or are dropped. Pure."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from schema import ErrorKind, MachineError

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_LONGEST: Final = 8  # days until quiet hours end that follow each other


class QuietHours(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Quiet hours from `start` to `end`, such as 22:00 to 07:00, which begin on the `days` (all if empty).

    Equal times mean the whole day. In a night in which the clocks change, times that do not exist count as the time
    an hour later, and of times that exist twice the first one counts.
    """

    zone: str
    start: str
    end: str
    days: tuple[str, ...] = ()
    mode: Literal["delay", "drop"] = "delay"

    def check(self) -> None:
        """Raise INVALID for an unknown zone, time or day."""
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise _invalid("zone", self.zone, "write a name such as Europe/Berlin or UTC") from None
        for name, text in (("start", self.start), ("end", self.end)):
            if _time(text) is None:
                raise _invalid(name, text, "write hours and minutes, such as 22:00")
        for day in self.days:
            if day not in DAYS:
                raise _invalid("days", day, f"use {', '.join(DAYS)}")


def quiet_until(quiet: QuietHours | None, now: datetime) -> datetime | None:
    """Return the end of the quiet hours in which `now` lies; None if it lies in none."""
    if quiet is None:
        return None
    until, moment = None, now
    for _ in range(_LONGEST):  # quiet hours may follow each other: whole days, or one that begins when another ends
        if (end := _end(quiet, moment)) is None:
            break
        until = moment = end
    return until


def _end(quiet: QuietHours, moment: datetime) -> datetime | None:
    zone = ZoneInfo(quiet.zone)
    today = moment.astimezone(zone).date()
    start, end = _time(quiet.start), _time(quiet.end)
    assert start is not None
    assert end is not None
    for day in (today - timedelta(days=1), today):
        if quiet.days and DAYS[day.weekday()] not in quiet.days:
            continue
        begins = _moment(day, start, zone)
        ends = _moment(day if end > start else day + timedelta(days=1), end, zone)
        if begins <= moment < ends:
            return ends
    return None


def _moment(day: date, at: time, zone: ZoneInfo) -> datetime:
    """Return a local time in UTC, so that differences are those of clocks that show UTC."""
    return datetime.combine(day, at, zone).astimezone(ZoneInfo("UTC"))


def _time(text: str) -> time | None:
    hours, colon, minutes = text.partition(":")
    digits = hours.isascii() and hours.isdigit() and len(hours) <= 2 and minutes.isascii() and minutes.isdigit()
    if not colon or not digits or len(minutes) != 2 or int(hours) > 23 or int(minutes) > 59:
        return None
    return time(int(hours), int(minutes))


def _invalid(field: str, value: str, remedy: str) -> MachineError:
    return MachineError(f"quiet.{field}: {value[:40]!r} is not valid", kind=ErrorKind.INVALID, remedy=remedy)

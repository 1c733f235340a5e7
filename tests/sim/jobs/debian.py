"""The algorithm of Debian's cron (cron.c, the loop of `main` and `find_jobs`), called once a minute, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1)
WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class Entry:
    """One line of a crontab: its times and whether it is a wildcard job."""

    def __init__(self, expression: str) -> None:
        minutes, hours, days, months, weekdays = expression.split()
        self.minutes, self.hours = _numbers(minutes, 0, 59), _numbers(hours, 0, 23)
        self.days, self.months = _numbers(days, 1, 31), _numbers(months, 1, 12)
        self.weekdays = {number % 7 for number in _numbers(weekdays, 0, 7)}
        self.wild = minutes[0] == "*" or hours[0] == "*"
        self.both_days = days[0] == "*" or weekdays[0] == "*"

    def matches(self, when: datetime) -> bool:
        """Return whether the job is to run in this minute of local time."""
        if when.minute not in self.minutes or when.hour not in self.hours or when.month not in self.months:
            return False
        day, weekday = when.day in self.days, when.isoweekday() % 7 in self.weekdays
        return day and weekday if self.both_days else day or weekday


class Cron:
    """The daemon. `tick` is its loop, called when a minute of the monotonic clock has passed."""

    def __init__(self, entries: Mapping[str, Entry], local: datetime) -> None:
        self.entries = entries
        self.times = {(hour, minute) for entry in entries.values() for hour in entry.hours for minute in entry.minutes}
        self.running = self.virtual = _number(local)

    def tick(self, local: datetime) -> set[str]:
        """Return the names of the jobs that are started at this local time."""
        now = _number(local)
        if now == self.running:
            return set()
        self.running = now
        difference = now - self.virtual
        started: set[str] = set()
        if difference == 1:
            self.virtual = now
            return self.run(now, wild=True, fixed=True)
        if 1 < difference <= 5:
            while self.virtual < now:
                self.virtual += 1
                started |= self.run(self.virtual, wild=True, fixed=True)
        elif 5 < difference <= 3 * 60:
            started |= self.run(now, wild=True, fixed=False)
            while self.virtual < now:
                self.virtual += 1
                started |= self.run(self.virtual, wild=False, fixed=True)
        elif -3 * 60 < difference <= 0:
            started |= self.run(now, wild=True, fixed=False)
        else:
            self.virtual = now
            started |= self.run(now, wild=True, fixed=True)
        return started

    def run(self, minute: int, *, wild: bool, fixed: bool) -> set[str]:
        """Return the jobs of a minute that have a wildcard or a fixed time."""
        when = EPOCH + timedelta(minutes=minute)
        if (when.hour, when.minute) not in self.times:
            return set()
        return {name for name, entry in self.entries.items() if (wild if entry.wild else fixed) and entry.matches(when)}


def _number(local: datetime) -> int:
    return (local.replace(tzinfo=None, fold=0) - EPOCH) // timedelta(minutes=1)


def _numbers(field: str, low: int, high: int) -> set[int]:
    numbers: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = ("0", "-", "0") if span == "*" else span.partition("-")
        begin = low if span == "*" else _value(first)
        end = high if span == "*" else _value(last) if last else begin
        numbers.update(range(begin, end + 1, int(step or 1)))
    return numbers


def _value(text: str) -> int:
    return WEEKDAYS.index(text) if text in WEEKDAYS else int(text)

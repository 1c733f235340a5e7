"""When a cron job runs although local time jumps: the rules of Debian's cron. Pure.

Debian's cron compares, at each full minute, the local time with a virtual time up to which it has run jobs. A change of
daylight saving time, a clock that is set and another time zone are the same to it: local time jumps. In this module,
times without a zone are local times.

| local time jumps | jobs with a fixed time | jobs with `*` in minutes or hours |
|---|---|---|
| forward by up to 3 h | those that were skipped run at once | follow the new time |
| back by less than 3 h | wait until the virtual time is reached again | follow the new time |
| further | follow the new time | follow the new time |

A job that was skipped several times runs once. Forward by up to 5 minutes is not a jump but a late wake-up, after which
all jobs are made up for.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from runtime.parts.jobs.schedule import Cron

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
SET: Final = SECOND  # difference to the monotonic clock from which the clock counts as set
LATE: Final = timedelta(minutes=5)  # forward: a late wake-up, not a jump
CORRECTION: Final = timedelta(hours=3)  # a larger jump is a correction, and nothing is made up for
HORIZON: Final = timedelta(days=1)  # farthest time for which a wake-up is planned; at most one zone change is within it


def local(moment: datetime) -> datetime:
    """Return the local time of `moment`, which has a time zone."""
    return moment.replace(tzinfo=None, fold=0)


def minute_of(moment: datetime) -> datetime:
    """Return the full minute that contains `moment`."""
    return moment.replace(second=0, microsecond=0)


def later(moment: datetime, step: timedelta) -> datetime:
    """Return the time that is `step` after `moment` in its zone, counting the seconds that pass."""
    return (moment.astimezone(UTC) + step).astimezone(moment.tzinfo)


class Timeline:
    """Decides when one cron job runs, from the local time and the seconds of a monotonic clock.

    Call `look` at `planned`, and earlier if the clock or the zone may have been set. If it returns True, run the job
    and call `ran`. `planned` is None when no run follows.
    """

    def __init__(self, cron: Cron, now: datetime, time: float) -> None:
        self._cron = cron
        self._mark = now, time  # when `now` was read last
        self._virtual = self._judged = minute_of(local(now))  # see the module; the last minute that was judged
        self._jumped = False  # local time has jumped since then
        self._window: datetime | None = None  # runs after this time, and in the judged minute at the latest, are due
        self.planned: datetime | None = now
        self._stay(now)

    def look(self, now: datetime, time: float) -> bool:
        """Return whether the job is to run at `now`, and plan the next look if it is not."""
        if self.planned is None:
            return False
        expected = self._expected(time)
        shift = _shift(expected, now)
        self._mark = now, time
        minute = minute_of(local(now))
        if shift >= SET:
            self._jump(min(expected, later(self.planned, -MINUTE), key=_seconds))
            if minute - self._judged != MINUTE or shift >= MINUTE:
                self.planned = _next_minute(now)
                return False
        elif _seconds(now) < _seconds(self.planned):
            return False
        if self._window is None:
            if not self._jumped:
                self._pass(local(later(self.planned, -MINUTE)))
            if minute == self._judged:
                self.planned = _next_minute(now)  # the clock was set back to the beginning of this minute
                return False
            self._jumped = False
            self._window = self._judge(minute)
        return self._look_into_window(now)

    def ran(self, now: datetime, time: float) -> None:
        """Plan the next look after a run, which ended at `now`. Times during the run are skipped."""
        begin, expected = self._mark[0], self._expected(time)
        was_set = _shift(expected, now) >= SET
        self._mark = now, time
        change = offset_change(begin, expected)
        self._pass(local(expected if change is None else later(change, -MINUTE)))
        if change is not None or was_set:
            self._window = None
            self._jump(expected if change is None else later(change, -MINUTE))
            self.planned = _next_minute(now)
        else:
            self._judged = minute_of(local(now))
            self._stay(now)

    def next_run(self, now: datetime) -> datetime | None:
        """Return when the job runs next if the clock is not set until then; None if it never does."""
        if self._window is not None:
            return self.planned
        if self._cron.follows_clock:
            return self._cron.after(now)
        due = self._due(now)
        if due is None:
            return None
        moments = [due.replace(tzinfo=now.tzinfo, fold=fold) for fold in (0, 1)]
        moment = next((moment for moment in moments if _seconds(moment) > _seconds(now)), moments[1])
        actual = later(moment, timedelta(0))
        if local(actual) == due:
            return moment
        return offset_change(later(actual, -HORIZON), actual) or actual  # a time that does not exist: right after it

    def _expected(self, time: float) -> datetime:
        """Return the time if the clock was not set since it was read last."""
        moment, before = self._mark
        return later(moment, timedelta(seconds=time - before))

    def _pass(self, moment: datetime) -> None:
        """Record that local time went up to `moment` without a jump, and that the job has run when it was due."""
        self._virtual = max(self._virtual, minute_of(moment))

    def _jump(self, before: datetime) -> None:
        """Record that local time jumps after `before`. Jumps within a minute are judged as one, like in cron."""
        if not self._jumped and self._window is None:
            self._judged = minute_of(local(before))
            self._pass(self._judged)
        self._jumped, self._window = True, None

    def _judge(self, minute: datetime) -> datetime | None:
        """Go to the local time `minute`; return the time after which runs up to the end of this minute are due.

        Returns None if none are, because this time is repeated.
        """
        ahead, virtual, just_before = minute - self._virtual, self._virtual, minute - SECOND
        self._judged = minute
        if ahead > timedelta(0) or ahead <= -CORRECTION:
            self._virtual = minute
        if self._cron.follows_clock:
            return virtual + MINUTE - SECOND if MINUTE < ahead <= LATE else just_before
        if timedelta(0) < ahead <= CORRECTION:
            return virtual + MINUTE - SECOND
        return just_before if abs(ahead) >= CORRECTION else None

    def _look_into_window(self, now: datetime) -> bool:
        due = self._cron.after(self._window) if self._window is not None else None
        if due is None or minute_of(due) > self._judged:
            self._window = None
            self.planned = self._wake_up(now)
        elif due <= local(now):
            return True
        else:
            self.planned = later(now, due - local(now))
        return False

    def _stay(self, now: datetime) -> None:
        """Plan the next look in the judged minute, which is that of `now`, or after it."""
        repeated = self._virtual > self._judged and not self._cron.follows_clock
        self._window = None if repeated else local(now)
        self._look_into_window(now)

    def _wake_up(self, now: datetime) -> datetime | None:
        """Return the minute of the next run; if the offset of the zone changes before, or HORIZON passes, that time."""
        minute, due = minute_of(now), self._due(now)
        if due is None:
            return None
        target = later(minute, min(minute_of(due) - local(minute), HORIZON))
        return offset_change(minute, target) or target

    def _due(self, now: datetime) -> datetime | None:
        reached = minute_of(local(now))
        if not self._cron.follows_clock and self._virtual - reached < CORRECTION:
            reached = max(reached, self._virtual)
        return self._cron.after(reached + MINUTE - SECOND)


def _seconds(moment: datetime) -> float:
    return moment.timestamp()  # times in the same zone compare by local time, which is repeated


def _shift(expected: datetime, now: datetime) -> timedelta:
    """Return by how much local time was set; both times have a zone, which may be another one now."""
    if now.tzinfo is not expected.tzinfo:
        return abs(local(now) - local(expected))
    return timedelta(seconds=abs(_seconds(now) - _seconds(expected)))


def _next_minute(now: datetime) -> datetime:
    return later(minute_of(now), MINUTE)


def offset_change(start: datetime, end: datetime) -> datetime | None:
    """Return the first full minute after `start`, up to `end`, with another UTC offset; None if both have the same."""
    zone: tzinfo | None = start.tzinfo
    if start.utcoffset() == end.utcoffset():
        return None
    low = minute_of(start.astimezone(UTC))
    steps = (end.astimezone(UTC) - low) // MINUTE
    first, last = 0, steps  # the offset is the old one at `first`, and the new one at `last`
    while last - first > 1:
        middle = (first + last) // 2
        if (low + middle * MINUTE).astimezone(zone).utcoffset() == start.utcoffset():
            first = middle
        else:
            last = middle
    return (low + last * MINUTE).astimezone(zone)

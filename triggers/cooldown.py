"""How long a target is left alone after it was told something. Pure.

There is one clock for each trigger, target and part. What happens while it runs is not told later either.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from triggers.document import CONDITIONAL, DATA, Notification, Trigger


def clock(trigger: Trigger, notification: Notification) -> str:
    """Which clock of the part a notification starts; the same as long as trigger and target are called the same.

    64 characters, however long those names are: it is in an index.
    """
    return hashlib.sha256(f"{trigger.name}\n{notification.type}\n{notification.value}".encode()).hexdigest()


def interval(trigger: Trigger, notification: Notification) -> timedelta:
    """How long the clock runs: not at all for a part that comes and goes, and for logs, which are looked at hourly."""
    timed = trigger.event.type in {DATA, CONDITIONAL}
    return timedelta(seconds=notification.seconds_between_notifications if timed else 0.0)


def due(last: datetime | None, now: datetime, wanted: timedelta) -> bool:
    """True if a target may be told now, `last` being when it was told before. A clock set back stops nothing."""
    return last is None or now - last >= wanted or last > now

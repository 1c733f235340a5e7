"""Minimum time between notifications to a target. Pure.

Each combination of trigger, target and part has a separate clock. Events while the clock runs are never notified.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from triggers.document import CONDITIONAL, DATA, Notification, Trigger


def clock(trigger: Trigger, notification: Notification) -> str:
    """Return the key of the clock of a notification within its part, which depends on the trigger name and the target.

    The key always has 64 characters, because it is stored in an index.
    """
    return hashlib.sha256(f"{trigger.name}\n{notification.type}\n{notification.value}".encode()).hexdigest()


def interval(trigger: Trigger, notification: Notification) -> timedelta:
    """Return the minimum time between notifications; zero for presence, and for logs, which are evaluated hourly."""
    timed = trigger.event.type in {DATA, CONDITIONAL}
    return timedelta(seconds=notification.seconds_between_notifications if timed else 0.0)


def due(last: datetime | None, now: datetime, interval_: timedelta) -> bool:
    """Return True if a target may be notified at `now`. A `last` notification in the future is ignored."""
    return last is None or now - last >= interval_ or last > now

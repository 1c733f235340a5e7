"""Whether a part is online: pure rules over when it called last, and whether it was given up since.

The time of day alone would take every machine offline when the cloud's clock is set forward, or its computer suspended.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Final

SILENCE: Final = timedelta(seconds=60)
"""A part that was not heard of for so long is offline; the buffer that the published triggers keep."""


class Presence(Enum):
    """What is known of a part."""

    NEVER = "awaiting setup"
    ONLINE = "online"
    OFFLINE = "offline"


def presence(seen: datetime | None, now: datetime, *, online: bool) -> Presence:
    """Return the state of a part that called last at `seen`; None if it never did.

    `online` is what `cloud.triggering.presence` records: True until SILENCE has passed on a clock that nobody sets.
    It is False for a part that has just come, until that is recorded, so a call less than SILENCE ago counts as well. A
    moment that is yet to come does not: the cloud's clock was wrong, and has been set back since.
    """
    if seen is None:
        return Presence.NEVER
    return Presence.ONLINE if online or abs(now - seen) < SILENCE else Presence.OFFLINE


def silent_for(seen: datetime | None, now: datetime, *, online: bool) -> int:
    """Return whole seconds since a part that is offline was online; 0 for one that is online or never was."""
    if seen is None or presence(seen, now, online=online) is not Presence.OFFLINE:
        return 0
    return max(0, int((now - seen).total_seconds()))

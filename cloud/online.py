"""Whether a part is online: pure rules over when it called last."""

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


def presence(seen: datetime | None, now: datetime) -> Presence:
    """`seen` is when the part called last; None if it never did.

    Of a moment that is yet to come nothing is known: the cloud's clock was wrong, and has been set back since.
    """
    if seen is None:
        return Presence.NEVER
    return Presence.ONLINE if abs(now - seen) < SILENCE else Presence.OFFLINE


def silent_for(seen: datetime | None, now: datetime) -> int:
    """Whole seconds since a part that is offline was online; 0 for one that is online or never was."""
    if seen is None or presence(seen, now) is not Presence.OFFLINE:
        return 0
    return max(0, int((now - seen).total_seconds()))

"""Online state of a part: pure rules over when it last called and whether it was declared offline since.

Wall-clock time alone would take every machine offline when the cloud's clock is set forward or its computer is
suspended.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Final

SILENCE: Final = timedelta(seconds=60)
"""A part that was silent for this long is offline; the published triggers use the same buffer."""


class Presence(Enum):
    """Online state of a part."""

    NEVER = "awaiting setup"
    ONLINE = "online"
    OFFLINE = "offline"


def presence(seen: datetime | None, now: datetime, *, online: bool, gone: bool = False) -> Presence:
    """Return the state of a part that last called at `seen` (None if never).

    `online` is what `cloud.domain.triggering.presence` records: True until SILENCE has passed on a monotonic clock. For
    a part that has just appeared it is False until that is recorded, so a call less than SILENCE ago counts as well. A
    call time further in the future does not count: the cloud's clock was wrong, and has been set back since.

    A part that is `gone` has stopped orderly and has said so. Its triggers wait for SILENCE all the same, so that a
    restart is not an event.
    """
    if seen is None:
        return Presence.NEVER
    if gone:
        return Presence.OFFLINE
    return Presence.ONLINE if online or abs(now - seen) < SILENCE else Presence.OFFLINE


def silent_for(seen: datetime | None, now: datetime, *, online: bool, gone: bool = False) -> int:
    """Return whole seconds since an offline part last called; 0 if it is online or never called."""
    if seen is None or presence(seen, now, online=online, gone=gone) is not Presence.OFFLINE:
        return 0
    return max(0, int((now - seen).total_seconds()))

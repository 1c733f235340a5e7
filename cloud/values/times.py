"""Times as stored in the database: microseconds since 1970, UTC. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

Clock = Callable[[], datetime]
"""Function that returns the current time, with time zone."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def now() -> datetime:
    """Return the computer's current time in UTC."""
    return datetime.now(UTC)


def stored(moment: datetime) -> int:
    """Return the stored form of a time. It is exact, so that what a client sends back compares equal."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(number: int) -> datetime:
    """Return the time for a stored number."""
    return _EPOCH + timedelta(microseconds=number)

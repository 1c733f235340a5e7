"""Times as the database keeps them: microseconds since 1970, UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

Clock = Callable[[], datetime]
"""Gives the time of day; aware."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def now() -> datetime:
    """The computer's clock."""
    return datetime.now(UTC)


def stored(moment: datetime) -> int:
    """As the database keeps it; exact, so that what a client sends back compares equal."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(number: int) -> datetime:
    """The moment that the database keeps as `number`."""
    return _EPOCH + timedelta(microseconds=number)

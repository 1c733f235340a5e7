"""Times as the commands print them: for people in local time, as `--since` reads them, and in JSON in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any


def local(moment: datetime | float, *, seconds: bool = True) -> str:
    """Return a time for people, in the time zone of this computer: `2026-01-02 03:04:05`.

    A number is in seconds since 1970. Raises OverflowError, ValueError or OSError for one beyond the calendar.
    """
    when = datetime.fromtimestamp(moment) if isinstance(moment, int | float) else moment.astimezone()
    return when.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")


def utc(moment: datetime | None) -> str | None:
    """Return a time as JSON has it, such as `2026-01-02T03:04:05.678Z`; None for None."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def with_texts(reply: Any) -> Any:
    """Return a reply with all times in it as text; see `utc`."""
    if isinstance(reply, datetime):
        return utc(reply)
    if isinstance(reply, Mapping):
        return {name: with_texts(value) for name, value in reply.items()}
    return [with_texts(value) for value in reply] if isinstance(reply, list) else reply

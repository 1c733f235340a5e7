"""Times in the replies of the cloud, as the commands print them. Pure."""

from __future__ import annotations

from datetime import datetime


def utc(moment: datetime | None) -> str | None:
    """Return a time as JSON has it, such as `2026-01-02T03:04:05.678Z`; None for None."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")

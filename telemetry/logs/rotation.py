"""Rotation of log files. Older parts are named like `machine.log.2006-01-02T15-04-05.000Z`; their number is limited."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from telemetry.logs.entry import timestamp

DAY: Final = 86_400  # seconds

_STAMP = re.compile(r"\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\Z")
_FIRST = re.compile(rb"(\d{4})-(\d\d)-(\d\d)T")


def older(path: Path) -> list[Path]:
    """Return the older parts of the file at `path`, the oldest first. OSError if the folder cannot be read."""
    start = len(path.name)
    siblings = path.parent.iterdir()
    return sorted(part for part in siblings if part.name.startswith(path.name) and _STAMP.match(part.name, start))


def rotate(path: Path, now: float, keep: int) -> None:
    """Append the time `now` (seconds since 1970) to the name of the file at `path`; keep at most `keep` older parts.

    OSError if the file cannot be renamed or an older part cannot be deleted; the next rotation deletes it then.
    """
    moment = now
    while (target := path.with_name(f"{path.name}.{timestamp(moment).replace(':', '-')}")).exists():
        moment += 0.001
    path.replace(target)
    parts = older(path)
    for part in parts[: len(parts) - keep]:
        part.unlink(missing_ok=True)


def first_day(path: Path) -> int | None:
    """Return the day of the first line of the file at `path` (days since 1970); None if it has no time."""
    import datetime

    with path.open("rb") as file:
        match = _FIRST.match(file.read(16))
    if match is None:
        return None
    try:
        day = datetime.date(*map(int, match.groups()))
    except ValueError:
        return None
    return (day - datetime.date(1970, 1, 1)).days

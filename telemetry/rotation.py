"""Older parts of a log file: `machine.log.2006-01-02T15-04-05.000Z` beside `machine.log`, a bounded number of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from telemetry.entry import timestamp

DAY: Final = 86_400  # seconds

_STAMP = re.compile(r"\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\Z")
_FIRST = re.compile(rb"(\d{4})-(\d\d)-(\d\d)T")


def older(path: Path) -> list[Path]:
    """The older parts of the file at `path`, the oldest first. OSError if the folder cannot be read."""
    start = len(path.name)
    found = [one for one in path.parent.iterdir() if one.name.startswith(path.name) and _STAMP.match(one.name, start)]
    return sorted(found)


def set_aside(path: Path, now: float, keep: int) -> None:
    """Rename the file at `path` to tell the time `now` (seconds since 1970), and delete all but `keep` older parts.

    OSError if it cannot be renamed; one that cannot be deleted is tried again at the next rotation.
    """
    moment = now
    while (target := path.with_name(f"{path.name}.{timestamp(moment).replace(':', '-')}")).exists():
        moment += 0.001
    path.replace(target)
    parts = older(path)
    for part in parts[: len(parts) - keep]:
        part.unlink(missing_ok=True)


def first_day(path: Path) -> int | None:
    """Days since 1970 of the first line of the file at `path`; None if it does not begin with a time."""
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

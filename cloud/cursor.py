"""Where a page ends, in what is ordered by a time and a running number: pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from cloud.times import stored
from schema.errors import ErrorKind, MachineError

Cursor = tuple[int, int]
"""Time as it is stored, and number, of the last one that was seen."""

_TEXT: Final = re.compile(r"(-?[0-9]{1,18})\.([0-9]{1,18})")  # what a database can compare with


def cursor(moment: datetime, number: int) -> str:
    """As clients are told it, and send it back for the next page."""
    return f"{stored(moment)}.{number}"


def read_cursor(text: str) -> Cursor:
    """What `cursor` has made; INVALID for anything else."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise MachineError(
            f"{text[:40]!r} is not where a page of this ends",
            kind=ErrorKind.INVALID,
            remedy="give what came with the page before, or begin anew",
        )
    return int(found[1]), int(found[2])

"""Page tokens for lists that are ordered by a time and a running number: pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from cloud.values.times import stored
from schema import ErrorKind, MachineError

Cursor = tuple[int, int]
"""Stored time and number of the last row on a page."""

_TEXT: Final = re.compile(r"(-?[0-9]{1,18})\.([0-9]{1,18})")  # values within the range of a database


def cursor(moment: datetime, number: int) -> str:
    """Return the page token for clients, which send it back to get the next page."""
    return f"{stored(moment)}.{number}"


def read_cursor(text: str) -> Cursor:
    """Parse the result of `cursor`; INVALID for anything else."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise MachineError(
            f"{text[:40]!r} is not a page token of this list",
            kind=ErrorKind.INVALID,
            remedy="send the token that came with the previous page, or none for the first page",
        )
    return int(match[1]), int(match[2])

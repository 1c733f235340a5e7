"""Limits of open streams per key and replica, because a stream occupies resources for as long as it lasts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from schema import ErrorKind, MachineError

STREAMS: Final = 200  # streaming calls and live pages of one key
FOLLOWERS: Final = 16  # push channels of one part: a machine has one, and may have lost others without noticing
WAITING_AGENTS: Final = 16  # agents of one part that wait for requests, most of them lost without notice
ANSWERERS: Final = 8  # calls of one part that wait for offers: a machine has two, and may have lost others


class Openings:
    """Counters of open streams. `closing`: the port closes, so calls that only wait end at once."""

    def __init__(self) -> None:
        self.closing = False
        self._open: Counter[str] = Counter()

    @contextmanager
    def hold(self, what: str, limit: int) -> Iterator[None]:
        """Count one stream of `what` while the context is open; EXHAUSTED if there are `limit` already."""
        if self._open[what] >= limit:
            raise MachineError(
                f"{what} has {limit} open streams already, which is the limit",
                kind=ErrorKind.EXHAUSTED,
                remedy="close some of them, or use another key",
            )
        self._open[what] += 1
        try:
            yield
        finally:
            self._open[what] -= 1
            if not self._open[what]:
                del self._open[what]

"""Limits of open streams per key and replica, because a stream occupies resources for as long as it lasts."""

from __future__ import annotations

from collections import Counter
from typing import Final

from schema import ErrorKind, MachineError

STREAMS: Final = 200  # streaming calls and live pages of one key
FOLLOWERS: Final = 16  # push channels of one part: a machine has one, and may have lost others without noticing
WAITING_AGENTS: Final = 16  # agents of one part that wait for requests, most of them lost without notice
ANSWERERS: Final = 8  # calls of one part that wait for offers: a machine has one, and may have lost others


class Openings:
    """Counters of open streams. `closing`: the port closes, so calls that only wait end at once."""

    def __init__(self) -> None:
        self.closing = False
        self._open: Counter[str] = Counter()

    def hold(self, what: str, limit: int) -> _Hold:
        """Return a context that counts one stream of `what`; EXHAUSTED, on entry, if there are `limit` already."""
        return _Hold(self._open, what, limit)


class _Hold:
    """Context of one stream. A class costs less memory than a generator."""

    __slots__ = ("_limit", "_open", "_what")

    def __init__(self, open: Counter[str], what: str, limit: int) -> None:  # noqa: A002 - as in Openings
        self._open = open
        self._what = what
        self._limit = limit

    def __enter__(self) -> None:
        if self._open[self._what] >= self._limit:
            raise MachineError(
                f"{self._what} has {self._limit} open streams already, which is the limit",
                kind=ErrorKind.EXHAUSTED,
                remedy="close some of them, or use another key",
            )
        self._open[self._what] += 1

    def __exit__(self, *_: object) -> None:
        self._open[self._what] -= 1
        if not self._open[self._what]:
            del self._open[self._what]

"""Delays between attempts."""

from __future__ import annotations

from typing import Final

_MAX_DOUBLINGS: Final = 60  # beyond any sensible `longest`; avoids an overflow


def doubled(first: float, longest: float, failures: int) -> float:
    """Return a delay that doubles with each failure in a row: 0, `first`, `2 * first` and so on, at most `longest`."""
    return min(longest, first * 2.0 ** min(failures - 1, _MAX_DOUBLINGS)) if failures > 0 else 0.0


class DoublingDelay:
    """The delays after failures in a row: `first`, `2 * first` and so on, at most `longest`."""

    __slots__ = ("_failures", "_first", "_longest")

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest, self._failures = first, longest, 0

    def next(self) -> float:
        """Return the delay after another failure, in seconds."""
        self._failures += 1
        return doubled(self._first, self._longest, self._failures)

    def reset(self) -> None:
        """Begin with `first` again: an attempt has succeeded."""
        self._failures = 0

"""Delays between attempts."""

from __future__ import annotations

from typing import Final

_MAX_DOUBLINGS: Final = 60  # beyond any sensible `longest`; avoids an overflow


def doubled(first: float, longest: float, failures: int) -> float:
    """Return a delay that doubles with each failure in a row: 0, `first`, `2 * first` and so on, at most `longest`."""
    return min(longest, first * 2.0 ** min(failures - 1, _MAX_DOUBLINGS)) if failures > 0 else 0.0

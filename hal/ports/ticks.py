"""Periodic ticks for control loops, from a kernel timer, so that delays do not accumulate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol


class Ticks(Protocol):
    """Ticks with a fixed period; iterating waits for the next one."""

    def __aiter__(self) -> AsyncIterator[int]:
        """Iterate over the number of periods since the last iteration: 1, or more if ticks were missed."""

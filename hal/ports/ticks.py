"""A steady beat for control loops: the kernel's timer instead of sleeps, so that lateness does not add up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol


class Ticks(Protocol):
    """Beats of a fixed period; iterating waits for the next one."""

    def __aiter__(self) -> AsyncIterator[int]:
        """How many periods have passed since the last iteration: 1 when in time, more when beats were missed."""

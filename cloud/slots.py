"""Turns for work that takes a while, so that one organization cannot take them all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

from cloud.limits import Limit


@dataclass(slots=True)
class _Line:
    """Those of one organization: at work, and waiting."""

    turns: trio.CapacityLimiter
    count: int = field(default=0)


class Slots:
    """At most `total` at once, at most `each` of one organization, and at most `queue` of it waiting.

    Whoever has a turn of its organization waits for one of the whole in order of arrival, so that others wait for at
    most `each` of any organization.
    """

    def __init__(self, total: int, each: int, queue: Limit) -> None:
        self._all: Final = trio.CapacityLimiter(total)
        self._each = each
        self._queue = queue
        self._lines: dict[str, _Line] = {}

    @asynccontextmanager
    async def one(self, organization: str) -> AsyncIterator[None]:
        """One turn while the context is open. EXHAUSTED at once if too many of the organization wait already."""
        line = self._lines.get(organization)
        if line is None:
            line = self._lines[organization] = _Line(trio.CapacityLimiter(self._each))
        self._queue.check_count(line.count - self._each, "the organization")
        line.count += 1
        try:
            async with line.turns, self._all:
                yield
        finally:
            line.count -= 1
            if not line.count:
                del self._lines[organization]

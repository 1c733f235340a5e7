"""Who has what open: the simulated kernel's table, beside the reservations that drivers make themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from hal.errors import Fault, HalError


class Owners:
    """Things by name, and the task that opened each."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def owner(self, thing: str) -> str | None:
        """Who has it open."""
        return self._owners.get(thing)

    @contextmanager
    def hold(self, thing: str, owner: str = "") -> Iterator[None]:
        """Have `thing` alone; HalError (busy) names who has it. The owner is the running task unless it is named."""
        if (other := self._owners.get(thing)) is not None:
            raise HalError(f"{thing} is used by {other}", Fault.BUSY)
        self._owners[thing] = owner or trio.lowlevel.current_task().name
        try:
            yield
        finally:
            del self._owners[thing]

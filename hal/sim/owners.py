"""The simulated kernel's table of open devices, in addition to the reservations by drivers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from hal.errors import Fault, HalError


class Owners:
    """The tasks that have opened devices, by the name of the device."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def owner(self, thing: str) -> str | None:
        """Return the owner of `thing`; None if it is not open."""
        return self._owners.get(thing)

    @contextmanager
    def hold(self, thing: str, owner: str = "") -> Iterator[None]:
        """Own `thing` while the context is open, by default as the current task; HalError (busy) names its owner."""
        if (other := self._owners.get(thing)) is not None:
            raise HalError(f"{thing} is used by {other}", Fault.BUSY)
        self._owners[thing] = owner or trio.lowlevel.current_task().name
        try:
            yield
        finally:
            del self._owners[thing]

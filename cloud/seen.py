"""When machines called last, without a write for each call: noted in memory, written together now and then.

Who was not heard of for a while is written at once, by its own call, so that it is online when that is answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NoReturn

import structlog
import trio

from cloud.machines import note_all_seen
from cloud.online import SILENCE
from cloud.store.sql import Store
from schema.errors import ErrorKind, MachineError

FRESH: Final = timedelta(seconds=25)  # a machine that called within this time is not written at once
FLUSH: Final = 5.0  # seconds between two writes; what is shown of who called is at most so much older than it is
TOGETHER: Final = 200  # parts in one transaction: it is short, and in nobody's way
FAREWELL: Final = 2.0  # seconds for the last write of a process that ends

_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.seen")


class Seen:
    """What this process has heard and not written yet."""

    def __init__(self) -> None:
        self._called: dict[str, datetime] = {}
        self._waiting: dict[str, datetime] = {}
        self._soon = trio.Event()

    def called(self, part: str, now: datetime) -> bool:
        """A part calls; True if its call has to write that, with `machines.note_seen`."""
        before = self._called.get(part)
        if before is not None and now < before:  # the clock was set back: nothing that is known counts
            self._called.clear()
            before = None
        self._called[part] = now
        if before is not None and now - before < FRESH:
            self._waiting[part] = now
            return False
        return True

    def heard(self, part: str, now: datetime) -> None:
        """As `called`, for what is no call: whoever is new is written soon, together with others."""
        if self.called(part, now):
            self._waiting[part] = now
            self._soon.set()

    def take(self) -> Mapping[str, datetime]:
        """What is to be written now; and parts that are silent are forgotten."""
        self._soon = trio.Event()
        taken, self._waiting = self._waiting, {}
        newest = max(self._called.values(), default=None)
        if newest is not None:
            self._called = {part: moment for part, moment in self._called.items() if newest - moment < SILENCE}
        return taken

    async def run(self, store: Store) -> NoReturn:
        """Write until cancelled, and then once more."""
        try:
            while True:
                with trio.move_on_after(FLUSH):
                    await self._soon.wait()
                await self._write(store)
        finally:
            with trio.move_on_after(FAREWELL, shield=True):
                await self._write(store)

    async def _write(self, store: Store) -> None:
        taken = list(self.take().items())
        for start in range(0, len(taken), TOGETHER):
            some = taken[start : start + TOGETHER]
            try:
                await store.write(lambda sql, some=some: note_all_seen(sql, some))  # type: ignore[misc]
            except MachineError as error:
                if error.kind is not ErrorKind.UNAVAILABLE:
                    raise
                _log.warning("who called could not be written", parts=len(some), reason=str(error))

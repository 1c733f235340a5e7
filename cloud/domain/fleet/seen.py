"""Last call times of machines, collected in memory and stored together at intervals.

A machine that was silent for a while is stored at once by its own call, so that it is online when the call returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NoReturn

import structlog
import trio

from cloud.domain.machines.machines import note_all_seen
from cloud.domain.machines.online import SILENCE
from cloud.store.sql import Store
from schema.errors import ErrorKind, MachineError

FRESH: Final = timedelta(seconds=25)  # a machine that called within this time is not stored at once
FLUSH: Final = 5.0  # seconds between writes; shown call times are at most this much out of date
TOGETHER: Final = 200  # parts in one transaction, which must be short
FAREWELL: Final = 2.0  # seconds for the last write when the process ends

_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.seen")


class Seen:
    """Calls that this process has received and not stored yet."""

    def __init__(self) -> None:
        self._called: dict[str, datetime] = {}
        self._waiting: dict[str, datetime] = {}
        self._soon = trio.Event()

    def called(self, part: str, now: datetime) -> bool:
        """Note a call of a part; return True if the call must store it itself, with `machines.note_seen`."""
        before = self._called.get(part)
        if before is not None and now < before:  # the clock was set back: the collected times are wrong
            self._called.clear()
            before = None
        self._called[part] = now
        if before is not None and now - before < FRESH:
            self._waiting[part] = now
            return False
        return True

    def heard(self, part: str, now: datetime) -> None:
        """Note a sign of life that is not a call; see `called`. If it must be stored, `run` does so soon."""
        if self.called(part, now):
            self._waiting[part] = now
            self._soon.set()

    def take(self) -> Mapping[str, datetime]:
        """Return what is to be stored now, and forget parts that are silent."""
        self._soon = trio.Event()
        taken, self._waiting = self._waiting, {}
        newest = max(self._called.values(), default=None)
        if newest is not None:
            self._called = {part: moment for part, moment in self._called.items() if newest - moment < SILENCE}
        return taken

    async def run(self, store: Store) -> NoReturn:
        """Store call times at intervals until cancelled, and then once more."""
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
                _log.warning("the times of the last calls could not be stored", parts=len(some), reason=str(error))

"""Last call times of machines, collected in memory and stored together at intervals.

The first call after a while without calls is stored by the call itself, so that the machine is online when it returns.
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
from schema import ErrorKind, MachineError
from support import ChangeSignal

FRESH: Final = timedelta(seconds=25)  # a machine that called within this time is not stored at once
FLUSH: Final = 5.0  # seconds between writes; shown call times are at most this much out of date
BATCH: Final = 200  # parts in one transaction, which must be short
LAST_WRITE: Final = 2.0  # seconds for the last write when the process ends

_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.seen")


class Seen:
    """Calls that this process has received and not stored yet."""

    def __init__(self) -> None:
        self._last_calls: dict[str, datetime] = {}
        self._pending: dict[str, datetime] = {}
        self._flush_requested = ChangeSignal()

    def called(self, part: str, now: datetime) -> bool:
        """Note a call of a part; return True if the call must store it itself, with `machines.note_seen`."""
        last_call = self._last_calls.get(part)
        if last_call is not None and now < last_call:  # the clock was set back: the collected times are wrong
            self._last_calls.clear()
            last_call = None
        self._last_calls[part] = now
        if last_call is not None and now - last_call < FRESH:
            self._pending[part] = now
            return False
        return True

    def contacted(self, part: str, now: datetime) -> None:
        """Note a contact that is not a call; see `called`. If it must be stored, `run` does so soon."""
        if self.called(part, now):
            self._pending[part] = now
            self._flush_requested.announce()

    def take(self) -> Mapping[str, datetime]:
        """Return what is to be stored now, and forget parts that are silent."""
        pending, self._pending = self._pending, {}
        newest = max(self._last_calls.values(), default=None)
        if newest is not None:
            self._last_calls = {part: moment for part, moment in self._last_calls.items() if newest - moment < SILENCE}
        return pending

    async def run(self, store: Store) -> NoReturn:
        """Store call times at intervals until cancelled, and then once more."""
        requested = self._flush_requested.next
        try:
            while True:
                with trio.move_on_after(FLUSH):
                    await requested.wait()
                requested = self._flush_requested.next
                await self._write(store)
        finally:
            with trio.move_on_after(LAST_WRITE, shield=True):
                await self._write(store)

    async def _write(self, store: Store) -> None:
        pending = list(self.take().items())
        for start in range(0, len(pending), BATCH):
            batch = pending[start : start + BATCH]
            try:
                await store.write(lambda sql, batch=batch: note_all_seen(sql, batch))  # type: ignore[misc]
            except MachineError as error:
                if error.kind is not ErrorKind.UNAVAILABLE:
                    raise
                _log.warning("the times of the last calls could not be stored", parts=len(batch), reason=str(error))

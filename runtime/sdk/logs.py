"""Sends the log of a module to the machine, in batches; entries are queued, and logging never waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import trio

from rpc.api import ApiClient
from schema import MachineError
from telemetry.logs import Entry, Sink

ROBOT: Final = "viam.robot.v1.RobotService"
QUEUE: Final = 5000  # entries kept while the machine does not accept them; the oldest are dropped first
BATCH: Final = 100  # entries per call; reference value of uploads
PAUSE: Final = 1.0  # seconds after a call that failed
_REFLECT: Final = 21  # type code for any value in zap, the logging library whose fields the protocol uses


class MachineSink:
    """A sink that sends entries to the machine as `host`. On close, unsent entries are written to `fallback`."""

    def __init__(self, host: str, fallback: Sink) -> None:
        self.dropped = 0
        """Number of entries dropped since the last one that was sent."""
        self._host = host
        self._fallback = fallback
        self._queue: deque[Entry] = deque()
        self._filled = trio.Event()

    def write(self, entry: Entry) -> None:
        """Queue an entry."""
        if len(self._queue) >= QUEUE:
            self._queue.popleft()
            self.dropped += 1
        self._queue.append(entry)
        self._filled.set()

    def close(self) -> None:
        """Write the remaining entries to the fallback, and close it."""
        while self._queue:
            self._fallback.write(self._queue.popleft())
        self._fallback.close()

    async def send(self, client: Callable[[], ApiClient]) -> None:
        """Send queued and new entries until cancelled. Failed calls are repeated."""
        while True:
            await self._filled.wait()
            try:
                await self.flush(client())
            except MachineError:
                await trio.sleep(PAUSE)

    async def flush(self, client: ApiClient) -> None:
        """Send the queued entries. Raises MachineError if the machine does not accept them; they stay queued."""
        while self._queue:
            batch = list(self._queue)[:BATCH]
            dropped, self.dropped = self.dropped, 0
            logs = [to_wire(entry, self._host) for entry in batch]
            if dropped:
                logs.insert(0, _loss_entry(batch[0], dropped, self._host))
            try:
                await client.call(ROBOT, "", "log", logs=logs)
            except BaseException:
                self.dropped += dropped
                raise
            while batch and self._queue and self._queue[0].seq <= batch[-1].seq:
                self._queue.popleft()
        self._filled = trio.Event()


def to_wire(entry: Entry, host: str) -> dict[str, Any]:
    """Return an entry in the form of the published message."""
    file, _, line = entry.caller.rpartition(":")
    caller = {"Defined": True, "File": file, "Line": int(line)} if file and line.isdigit() else {}
    return {
        "host": host,
        "level": entry.level_name.lower(),
        "time": datetime.fromtimestamp(entry.time, UTC),
        "logger_name": entry.logger,
        "message": entry.message,
        "caller": caller,
        "stack": entry.trace,
        "fields": [{"Key": key, "Type": _REFLECT, "Interface": value} for key, value in entry.fields.items()],
    }


def _loss_entry(next_entry: Entry, dropped: int, host: str) -> dict[str, Any]:
    entry = Entry(0, next_entry.time, 30, next_entry.logger, "", f"{dropped} messages before this one were lost")
    return to_wire(entry, host)

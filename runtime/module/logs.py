"""What a module logs, on its way to the machine: kept until it can be sent, sent in batches, never waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import trio

from rpc.api.client import ApiClient
from schema.errors import MachineError
from telemetry.entry import Entry
from telemetry.sinks import Sink

ROBOT: Final = "viam.robot.v1.RobotService"
QUEUE: Final = 5000  # entries kept while the machine does not take them; the oldest goes first
BATCH: Final = 100  # entries in one call; reference value of uploads
PAUSE: Final = 1.0  # seconds after a call that failed
_REFLECT: Final = 21  # how zap, whose fields the protocol carries, marks a value of any kind


class MachineSink:
    """A sink that sends entries to the machine as `host`. What cannot be sent in the end goes to `fallback`."""

    def __init__(self, host: str, fallback: Sink) -> None:
        self.dropped = 0
        """Entries lost since the last that was sent."""
        self._host = host
        self._fallback = fallback
        self._queue: deque[Entry] = deque()
        self._filled = trio.Event()

    def write(self, entry: Entry) -> None:
        """Take an entry; returns at once."""
        if len(self._queue) >= QUEUE:
            self._queue.popleft()
            self.dropped += 1
        self._queue.append(entry)
        self._filled.set()

    def close(self) -> None:
        """Hand over what is left."""
        while self._queue:
            self._fallback.write(self._queue.popleft())
        self._fallback.close()

    async def send(self, client: Callable[[], ApiClient]) -> None:
        """Send what there is and what comes, until cancelled. A call that fails is made again."""
        while True:
            await self._filled.wait()
            try:
                await self.flush(client())
            except MachineError:
                await trio.sleep(PAUSE)

    async def flush(self, client: ApiClient) -> None:
        """Send what there is; MachineError if the machine does not take it, and then nothing is lost."""
        while self._queue:
            batch = list(self._queue)[:BATCH]
            dropped, self.dropped = self.dropped, 0
            logs = [to_wire(entry, self._host) for entry in batch]
            if dropped:
                logs.insert(0, _note(batch[0], dropped, self._host))
            try:
                await client.call(ROBOT, "", "log", logs=logs)
            except BaseException:
                self.dropped += dropped
                raise
            while batch and self._queue and self._queue[0].seq <= batch[-1].seq:
                self._queue.popleft()
        self._filled = trio.Event()


def to_wire(entry: Entry, host: str) -> dict[str, Any]:
    """An entry as the published message has it."""
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


def _note(before: Entry, dropped: int, host: str) -> dict[str, Any]:
    lost = Entry(0, before.time, 30, before.logger, "", f"{dropped} messages before this one were lost")
    return to_wire(lost, host)

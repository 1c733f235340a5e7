"""Upload log messages to the cloud from the queue on disk, in order, each until it is acknowledged."""

from __future__ import annotations

import json
import random
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
import trio

from rpc.api import ApiClient
from schema import ErrorKind, MachineError
from support import DoublingDelay
from telemetry.logs import Entry, OutboxSink
from uplink.dial import CloudAddress

SERVICE: Final = "viam.app.v1.RobotService"
BATCH: Final = 500  # maximum entries of one call; the protocol allows 1,000
CALL_LIMIT: Final = 10.0  # seconds for a call, in addition to the time for the transfer of its bytes
SLOWEST: Final = 8 * 1024  # assumed minimum bytes per second of a connection
LEVELS: Final = 20  # maximum nesting of a field's value: each level uses three of the 100 levels of protobuf
FIRST_DELAY: Final = 0.5
MAX_DELAY: Final = 30.0
GATHER: Final = 0.2  # seconds between two calls, so that each transfers more than one line

_log = structlog.get_logger("rdk.networking")


async def upload_logs(sink: OutboxSink, address: CloudAddress) -> None:
    """Send the messages in the queue until cancelled. Each outage is logged once."""
    delay, trouble = DoublingDelay(FIRST_DELAY, MAX_DELAY), False
    async with address.channel() as channel:
        client = ApiClient(channel)
        while True:
            batch = await sink.next(BATCH)
            entries = [wire_entry(entry) for entry in batch.entries]
            try:
                with trio.fail_after(CALL_LIMIT + batch.size / SLOWEST):
                    await _send(client, address.part, entries)
            except (MachineError, trio.TooSlowError, OSError) as error:
                if not trouble:
                    trouble = True
                    _log.warning(
                        "log messages cannot be uploaded; they are queued", reason=str(error) or "no answer in time"
                    )
                if await address.contact.pause(delay.next() * random.uniform(0.5, 1.0)):
                    delay.reset()
                continue
            sink.acknowledge(batch.last)
            delay.reset()
            trouble = False
            await trio.sleep(GATHER)


async def _send(client: ApiClient, part: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """Send entries. An entry that the cloud rejects even alone is skipped, so that it does not block the others."""
    try:
        await client.call(SERVICE, "", "log", id=part, logs=entries)
    except MachineError as error:
        if error.kind not in (ErrorKind.INVALID, ErrorKind.EXHAUSTED):
            raise
        if len(entries) > 1:
            half = len(entries) // 2
            await _send(client, part, entries[:half])
            await _send(client, part, entries[half:])
        elif error.kind is ErrorKind.INVALID:
            _log.error("the cloud rejects a log message; it is skipped", reason=str(error), of=entries[0]["time"])
        else:
            raise


def wire_entry(entry: Entry) -> dict[str, Any]:
    """Return a log message in the form of the protocol."""
    file, _, line = entry.caller.rpartition(":")
    caller: Mapping[str, Any] = {"File": file or entry.caller, "Line": int(line) if line.isdigit() else 0}
    return {
        "host": socket.gethostname(),
        "level": entry.level_name.lower(),
        "time": _datetime(entry.time),
        "logger_name": entry.logger,
        "message": entry.message,
        "caller": caller,
        "stack": entry.trace,
        "fields": [{"Key": key, "Value": _encodable(value)} for key, value in entry.fields.items()],
    }


def _encodable(value: Any) -> Any:
    """Return the value of a field, or its JSON text if the protocol cannot represent it."""
    return value if _fits(value, LEVELS) else json.dumps(value, ensure_ascii=False)


def _fits(value: Any, levels: int) -> bool:
    if isinstance(value, Mapping | list):
        inner = value.values() if isinstance(value, Mapping) else value
        return levels > 0 and all(_fits(item, levels - 1) for item in inner)
    return not isinstance(value, int) or abs(value) <= sys.float_info.max


def _datetime(seconds: float) -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC)

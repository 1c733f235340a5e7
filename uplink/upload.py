"""Log messages on their way to the cloud: from the queue on disk, in order, each until it was acknowledged."""

from __future__ import annotations

import json
import random
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
import trio

from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from telemetry.entry import Entry
from telemetry.outbox_sink import OutboxSink
from uplink.dial import CloudAddress

SERVICE: Final = "viam.app.v1.RobotService"
BATCH: Final = 500  # entries of one call; the protocol allows 1,000
CALL_LIMIT: Final = 10.0  # seconds for a call, besides the time that its bytes need
SLOWEST: Final = 8 * 1024  # bytes per second that a link carries at least
LEVELS: Final = 20  # of a field's value: each takes three of the 100 levels that protobuf reads
FIRST_DELAY: Final = 0.5
MAX_DELAY: Final = 30.0
GATHER: Final = 0.2  # seconds between two calls, so that each carries more than a line

_log = structlog.get_logger("rdk.networking")


async def upload(sink: OutboxSink, address: CloudAddress) -> None:
    """Send what the queue holds, until cancelled. An outage is told once."""
    delay, trouble = FIRST_DELAY, False
    async with address.channel() as channel:
        client = ApiClient(channel)
        while True:
            batch = await sink.next(BATCH)
            entries = [wire_entry(entry) for entry in batch.entries]
            try:
                with trio.fail_after(CALL_LIMIT + batch.size / SLOWEST):
                    await _sent(client, address.part, entries)
            except (MachineError, trio.TooSlowError, OSError) as error:
                if not trouble:
                    trouble = True
                    _log.warning("log messages wait for the cloud", reason=str(error) or "no answer in time")
                came = await address.contact.pause(delay * random.uniform(0.5, 1.0))
                delay = FIRST_DELAY if came else min(2 * delay, MAX_DELAY)
                continue
            sink.acknowledge(batch.last)
            delay, trouble = FIRST_DELAY, False
            await trio.sleep(GATHER)


async def _sent(client: ApiClient, part: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """Send entries. One that the cloud refuses whatever comes with it is left out, so that it holds up no others."""
    try:
        await client.call(SERVICE, "", "log", id=part, logs=entries)
    except MachineError as error:
        if error.kind not in (ErrorKind.INVALID, ErrorKind.EXHAUSTED):
            raise
        if len(entries) > 1:
            half = len(entries) // 2
            await _sent(client, part, entries[:half])
            await _sent(client, part, entries[half:])
        elif error.kind is ErrorKind.INVALID:
            _log.error("the cloud refuses a log message, which is left out", reason=str(error), of=entries[0]["time"])
        else:
            raise


def wire_entry(entry: Entry) -> dict[str, Any]:
    """A message as the protocol writes it."""
    file, _, line = entry.caller.rpartition(":")
    caller: Mapping[str, Any] = {"File": file or entry.caller, "Line": int(line) if line.isdigit() else 0}
    return {
        "host": socket.gethostname(),
        "level": entry.level_name.lower(),
        "time": _moment(entry.time),
        "logger_name": entry.logger,
        "message": entry.message,
        "caller": caller,
        "stack": entry.trace,
        "fields": [{"Key": key, "Value": _carried(value)} for key, value in entry.fields.items()],
    }


def _carried(value: Any) -> Any:
    """The value of a field, or its JSON where the protocol cannot carry it."""
    return value if _fits(value, LEVELS) else json.dumps(value, ensure_ascii=False)


def _fits(value: Any, levels: int) -> bool:
    if isinstance(value, Mapping | list):
        inner = value.values() if isinstance(value, Mapping) else value
        return levels > 0 and all(_fits(one, levels - 1) for one in inner)
    return not isinstance(value, int) or abs(value) <= sys.float_info.max


def _moment(seconds: float) -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC)

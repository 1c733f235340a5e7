"""Log messages on their way to the cloud: from the queue on disk, in order, each until it was acknowledged."""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping
from typing import Any, Final

import structlog
import trio

from rpc.api.client import ApiClient
from runtime.cloud.dial import CloudAddress
from schema.errors import MachineError
from telemetry.entry import Entry
from telemetry.outbox_sink import OutboxSink

SERVICE: Final = "viam.app.v1.RobotService"
BATCH: Final = 500  # entries of one call; the protocol allows 1,000
CALL_LIMIT: Final = 10.0  # seconds
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
                with trio.fail_after(CALL_LIMIT):
                    await client.call(SERVICE, "", "log", id=address.part, logs=entries)
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
        "fields": [{"Key": key, "Value": value} for key, value in entry.fields.items()],
    }


def _moment(seconds: float) -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC)

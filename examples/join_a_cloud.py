"""Join a cloud with `uplink` alone: follow the configuration, report a state, upload log messages.

    python examples/join_a_cloud.py CREDENTIALS [FOLDER]

CREDENTIALS is the file that the cloud offers for a machine (on its page: Set up). FOLDER keeps the last configuration
and the log messages that have not been uploaded; the default is `.join` next to CREDENTIALS. Each configuration is
printed when it arrives. Ctrl-C ends the program; remaining log messages are uploaded at the next start.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import trio

from schema import ConfigError
from schema.document import Cloud, decode_document
from support import Worker
from telemetry.logs import INFO, WARN, Entry, OutboxSink
from telemetry.outbox import Outbox
from uplink import CloudSource, address_of, platform, upload_logs


class Log:
    """Log messages of this program, sent to the cloud through a queue on the disk."""

    def __init__(self, sink: OutboxSink) -> None:
        self._sink = sink
        self._numbers = itertools.count(1)

    def write(self, level: int, message: str, **fields: Any) -> None:
        """Queue one message for the cloud."""
        entry = Entry(next(self._numbers), time.time(), level, "example", "examples/join_a_cloud.py:1", message, fields)
        self._sink.write(entry)


async def follow(source: CloudSource, log: Log, state: dict[str, Any]) -> None:
    """Print every usable configuration, and report in the cloud's log whether it is used."""
    async with source.readings() as readings:
        async for reading in readings:
            decoded = decode_document(reading.data or b"")
            if decoded.document is None:
                log.write(
                    WARN, "the configuration cannot be used", problems=[str(problem) for problem in decoded.problems]
                )
                continue
            components = [entry.name.short for entry in decoded.document.components]
            print(json.dumps({"revision": decoded.document.revision, "components": components}), flush=True)
            await source.used(reading)  # store it for a start without the cloud
            state["revision"] = decoded.document.revision
            log.write(INFO, "the configuration is in use", components=components)


async def main(initial: bytes, cloud: Cloud, files: Path, folder: Path) -> None:
    """Join `cloud`, whose credentials file is `initial` in the folder `files`, until cancelled."""
    address, worker = address_of(cloud, files), Worker("files")
    sink = OutboxSink(Outbox(folder / "logs", worker.run))
    source = CloudSource(address, initial, folder, worker)
    state: dict[str, Any] = {"state": "running", "platform": platform(), "version": "example"}

    async def send_live(*_: object) -> None:
        """Send live data; this program has none."""

    source.attach(state=lambda: dict(state), changes=tuple, restart=partial(print, "asked to restart"), tell=send_live)
    async with worker.opened(), trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        nursery.start_soon(upload_logs, sink, address)
        nursery.start_soon(follow, source, Log(sink), state)


def cloud_of(credentials: Path, initial: bytes) -> Cloud:
    """Return the `cloud` section of a credentials file."""
    document = decode_document(initial).document
    if document is None or document.cloud is None:
        raise ConfigError(str(credentials), "has no `cloud` section", remedy="give the file that the cloud offers")
    return document.cloud


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    file = Path(sys.argv[1])
    folder = Path(sys.argv[2]) if len(sys.argv) == 3 else file.parent / ".join"
    try:
        initial = file.read_bytes()
        cloud = cloud_of(file, initial)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ConfigError) as error:
        sys.exit(str(error))
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # of `uplink` itself
    try:
        trio.run(main, initial, cloud, file.parent, folder)
    except* KeyboardInterrupt:
        pass

"""Log messages on their way to an uploader that may be offline for weeks: a sink that keeps them in an outbox."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec
import trio

from telemetry.entry import ERROR, WARN, Entry
from telemetry.names import LOGS
from telemetry.outbox import Batch, Gap, Outbox
from telemetry.records import Record
from telemetry.sinks import Notice

SYNC_DELAY: Final = 1.0
"""Seconds after which a message is on the disk at the latest, if the disk keeps up: what a power cut may cost."""

LAST_SYNC_LIMIT: Final = 2.0  # seconds for what was not on the disk when the server stops
MAX_ENTRY: Final = 64 * 1024  # bytes of a message as it is kept; longer ones are cut
MAX_UPLOAD: Final = 256 * 1024  # bytes of messages, as they are kept, that are given at once: a slow line has an end
_KEPT_OF_LONG: Final = 8 * 1024  # characters of a message, and of its trace, that was too long


class Upload(NamedTuple):
    """Entries to be uploaded, the oldest first; then `OutboxSink.acknowledge(last)`. `size` in bytes, as kept."""

    entries: tuple[Entry, ...]
    last: int
    size: int


class OutboxSink:
    """Keeps every message until it was uploaded, within the bounds of `outbox`, which it closes.

    Messages that were lost on the way are told by one entry in their place, exactly counted. `run` is a node.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._appended = trio.Event()
        self._durable = trio.Event()
        self._trouble = False
        self._offered: Upload | None = None  # what `next` gave and was not acknowledged

    def write(self, entry: Entry) -> Notice | None:
        """Append the message."""
        try:
            self._outbox.append(_encoded(entry))
        except OSError as error:
            notice = None if self._trouble else _unwritable(error)
            self._trouble = True
            return notice
        self._trouble = False
        self._appended.set()
        return None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Bring messages to the disk until cancelled, then what is left."""
        task_status.started()
        self._appended.set()  # what a former process left with the kernel
        try:
            while True:
                await self._appended.wait()
                await trio.sleep(SYNC_DELAY)
                self._appended = trio.Event()
                await self._sync()
        finally:
            with trio.move_on_after(LAST_SYNC_LIMIT, shield=True):
                await self._sync()

    async def _sync(self) -> None:
        try:
            await self._outbox.sync()
        except OSError as error:
            if not self._trouble:
                import structlog

                self._trouble = True
                structlog.get_logger(LOGS).error("log messages cannot be brought to the disk", error=str(error))
            return
        self._durable.set()
        self._durable = trio.Event()

    async def next(self, limit: int = 100) -> Upload:
        """At most `limit` entries, as soon as there is one to be uploaded; the very same until they are acknowledged.

        They are MAX_UPLOAD bytes at most, or one that is larger. So an upload whose answer was lost can be known again,
        and what was lost is counted once.
        """
        while self._offered is None:
            durable = self._durable
            batch = await self._outbox.read(limit)
            if batch.last:
                self._offered = _upload(batch)
                break
            await durable.wait()
        return self._offered

    def acknowledge(self, last: int) -> None:
        """What `next` gave up to `last` was uploaded."""
        self._outbox.acknowledge(last)
        self._offered = None
        self._appended.set()  # so that the cursor comes to the disk, and finished segments go

    def close(self) -> None:
        """Release the files."""
        self._outbox.close()


def _unwritable(error: OSError) -> Notice:
    return Notice(
        ERROR, f"log messages cannot be kept for upload: {error.strerror or error}; they are lost until they can"
    )


def _encoded(entry: Entry) -> bytes:
    try:
        data = msgspec.json.encode(entry)
    except (UnicodeError, ValueError, msgspec.MsgspecError):  # lone surrogates, as in names of files that are no UTF-8
        fields = {_whole(key): _whole(value) for key, value in entry.fields.items()}
        entry = replace(entry, message=_whole(entry.message), trace=_whole(entry.trace), fields=fields)
        data = msgspec.json.encode(entry)
    if len(data) <= MAX_ENTRY:
        return data
    cut = replace(
        entry,
        message=entry.message[:_KEPT_OF_LONG],
        trace=entry.trace[-_KEPT_OF_LONG:],
        fields={"cut": f"this message had {len(data)} bytes"},
    )
    return msgspec.json.encode(cut)


def _whole(value: object) -> str:
    """Its text, with escapes for what UTF-8 cannot say."""
    try:
        return str(value).encode(errors="backslashreplace").decode()
    except ValueError:  # a number with too many digits
        return f"<{type(value).__name__}>"


def _upload(batch: Batch) -> Upload:
    size = last = 0
    items: list[Record | Gap] = []
    for item in batch.items:
        more = len(item.data) if isinstance(item, Record) else 0
        if items and size + more > MAX_UPLOAD:
            break
        items.append(item)
        size += more
        last = item.number if isinstance(item, Record) else item.last
    return Upload(_entries(tuple(items)), last, size)


def _entries(items: tuple[Record | Gap, ...]) -> tuple[Entry, ...]:
    """What to upload. Of the time of what was lost only is known what came next: it is the same at each try."""
    found: list[Entry] = []
    after = 0.0
    for item in reversed(items):
        entry = _gap(item, after or time.time()) if isinstance(item, Gap) else _entry(item)
        after = entry.time
        found.append(entry)
    return tuple(reversed(found))


def _gap(gap: Gap, moment: float) -> Entry:
    words = "1 log message was" if gap.missing == 1 else f"{gap.missing} log messages were"
    fields = {"lost": gap.missing, "first": gap.first, "last": gap.last}
    return Entry(0, moment, WARN, LOGS, "", f"{words} lost before they could be uploaded", fields)


def _entry(item: Record) -> Entry:
    try:
        return msgspec.json.decode(item.data, type=Entry)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # of another version
        return Entry(0, time.time(), ERROR, LOGS, "", "a kept log message cannot be read", {"number": item.number})

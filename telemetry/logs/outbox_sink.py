"""A log sink that queues messages on disk for an uploader, which may be offline for weeks."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec
import trio

from support import ChangeSignal
from telemetry.logs.entry import ERROR, WARN, Entry
from telemetry.logs.logger_names import LOGS
from telemetry.logs.sinks import Notice
from telemetry.outbox.queue import Batch, Gap, Outbox
from telemetry.outbox.records import OutboxRecord

SYNC_DELAY: Final = 1.0
"""Seconds until a message is synced to the disk: a power cut loses at most the messages of this period."""

LAST_SYNC_LIMIT: Final = 2.0  # seconds for the last sync when the server stops
MAX_ENTRY: Final = 64 * 1024  # bytes of an encoded message; longer ones are shortened
MAX_UPLOAD: Final = 256 * 1024  # bytes of the messages of an upload, so that it ends in time on a slow connection
_MAX_TEXT: Final = 8 * 1024  # characters of the message and of the trace in a shortened entry


class Upload(NamedTuple):
    """Entries to upload, the oldest first; then call `OutboxSink.acknowledge(last)`. `size` is in encoded bytes."""

    entries: tuple[Entry, ...]
    last: int
    size: int


class OutboxSink:
    """Queues every message until it is uploaded, within the limits of `outbox`, which it closes.

    Lost messages are replaced by an entry that states their exact number. `run` is a node of the graph.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._appended = ChangeSignal()
        self._durable = ChangeSignal()
        self._trouble = False
        self._pending: Upload | None = None  # the result of `next`, until it is acknowledged

    def write(self, entry: Entry) -> Notice | None:
        """Append the message."""
        try:
            self._outbox.append(_encoded(entry))
        except OSError as error:
            notice = None if self._trouble else _unwritable(error)
            self._trouble = True
            return notice
        self._trouble = False
        self._appended.announce()
        return None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Sync messages to the disk until cancelled, then once more."""
        task_status.started()
        appended = self._appended.next
        self._appended.announce()  # a previous process may have left messages that are not on the disk
        try:
            while True:
                await appended.wait()
                await trio.sleep(SYNC_DELAY)
                appended = self._appended.next
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
                structlog.get_logger(LOGS).error("log messages cannot be synced to the disk", error=str(error))
            return
        self._durable.announce()

    async def synced(self) -> None:
        """Wait until the messages that were written so far are on the disk, or were dropped."""
        last = self._outbox.appended
        while self._outbox.durable < last:
            durable = self._durable.next
            self._appended.announce()
            await durable.wait()

    async def next(self, limit: int = 100) -> Upload:
        """Wait for entries to upload and return at most `limit`; the same ones again until they are acknowledged.

        They have at most MAX_UPLOAD bytes, or are a single larger entry. Returning the same entries allows the receiver
        to recognize a repeated upload, and each lost message is counted once.
        """
        while self._pending is None:
            durable = self._durable.next
            batch = await self._outbox.read(limit)
            if batch.last:
                self._pending = _upload(batch)
                break
            await durable.wait()
        return self._pending

    def acknowledge(self, last: int) -> None:
        """Mark the entries of `next` up to `last` as uploaded."""
        self._outbox.acknowledge(last)
        self._pending = None
        self._appended.announce()  # sync the cursor and delete finished segments

    def close(self) -> None:
        """Close the files."""
        self._outbox.close()


def _unwritable(error: OSError) -> Notice:
    return Notice(
        ERROR, f"log messages cannot be queued for upload: {error.strerror or error}; they are lost until this is fixed"
    )


def _encoded(entry: Entry) -> bytes:
    try:
        data = msgspec.json.encode(entry)
    except (UnicodeError, ValueError, msgspec.MsgspecError):  # lone surrogates, as in file names that are not UTF-8
        fields = {_valid_text(key): _valid_text(value) for key, value in entry.fields.items()}
        entry = replace(entry, message=_valid_text(entry.message), trace=_valid_text(entry.trace), fields=fields)
        data = msgspec.json.encode(entry)
    if len(data) <= MAX_ENTRY:
        return data
    cut = replace(
        entry,
        message=entry.message[:_MAX_TEXT],
        trace=entry.trace[-_MAX_TEXT:],
        fields={"cut": f"this message had {len(data)} bytes"},
    )
    return msgspec.json.encode(cut)


def _valid_text(value: object) -> str:
    """Return the text of a value, with escapes for characters that UTF-8 cannot encode."""
    try:
        return str(value).encode(errors="backslashreplace").decode()
    except ValueError:  # a number with too many digits
        return f"<{type(value).__name__}>"


def _upload(batch: Batch) -> Upload:
    size = last = 0
    items: list[OutboxRecord | Gap] = []
    for item in batch.items:
        more = len(item.data) if isinstance(item, OutboxRecord) else 0
        if items and size + more > MAX_UPLOAD:
            break
        items.append(item)
        size += more
        last = item.number if isinstance(item, OutboxRecord) else item.last
    return Upload(_entries(tuple(items)), last, size)


def _entries(items: tuple[OutboxRecord | Gap, ...]) -> tuple[Entry, ...]:
    """Return the entries to upload. A gap gets the time of the next entry, so that repeated calls return the same."""
    entries: list[Entry] = []
    following = 0.0
    for item in reversed(items):
        entry = _gap(item, following or time.time()) if isinstance(item, Gap) else _entry(item)
        following = entry.time
        entries.append(entry)
    return tuple(reversed(entries))


def _gap(gap: Gap, moment: float) -> Entry:
    subject = "1 log message was" if gap.missing == 1 else f"{gap.missing} log messages were"
    fields = {"lost": gap.missing, "first": gap.first, "last": gap.last}
    return Entry(0, moment, WARN, LOGS, "", f"{subject} lost before they could be uploaded", fields)


def _entry(item: OutboxRecord) -> Entry:
    try:
        return msgspec.json.decode(item.data, type=Entry)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # written by another version
        return Entry(0, time.time(), ERROR, LOGS, "", "a queued log message cannot be decoded", {"number": item.number})

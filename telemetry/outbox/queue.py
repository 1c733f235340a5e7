"""A queue on disk: records are appended, read in batches and acknowledged, across crashes and power cuts.

Records that `append` has accepted survive the end of the process (the kernel has them). Records up to the number that
`sync` has returned survive a power cut (they are on the disk); only these are read, so a number that was read never
refers to another record later. After a crash a reader may see a record again, but a missing record is always reported
as a Gap: numbers are consecutive, and a missing number means that the record was dropped or damaged.

The folder contains segments, named by the number of their first record, and `cursor` with the last acknowledged number.
A segment is deleted when all its records were acknowledged; the oldest one also when the total size limit is exceeded.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import zlib
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from support import RunBlocking
from support.files import open_file, read_at, sync_file, sync_folder, try_lock_file, write_at
from telemetry.outbox.records import OutboxRecord, encode, scan

MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes on disk beyond which the oldest segment is dropped; enough for some 40,000 typical log messages."""

SEGMENT_BYTES: Final = 256 * 1024
"""Maximum size of a segment, which is the unit in which records are read and dropped."""

UNREADABLE: Final = ".unreadable"  # suffix of a segment that cannot be read
_SUFFIX: Final = ".segment"
_SLOT = struct.Struct(">QI")  # number and CRC-32; two slots are written in turn, so that one is always intact


class Gap(NamedTuple):
    """Records that are missing: numbers `first` to `last`."""

    first: int
    last: int

    @property
    def missing(self) -> int:
        """The number of missing records."""
        return self.last - self.first + 1


class Batch(NamedTuple):
    """The next records in order. Acknowledge them with `last`, which is 0 for an empty batch."""

    items: tuple[OutboxRecord | Gap, ...]
    last: int


class Outbox:
    """The queue in `folder`, which is created if missing; only one process can use it at a time.

    Raises OSError if the folder cannot be used, BlockingIOError if another process uses it. `run` executes the blocking
    calls. Call only one `sync` or `read` at a time.
    """

    def __init__(
        self, folder: Path, run: RunBlocking, *, max_bytes: int = MAX_BYTES, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        for missing in (folder.parent, folder):  # `parents` would make them with the permissions of the umask
            missing.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._run = run
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self._cursor = _Cursor(folder / "cursor")
        self._segments = {first: path.stat().st_size for first, path in _segments(folder)}  # size by first number
        self._fd = -1  # the newest segment, once a record was appended
        self._unsynced = set(self._segments)  # after a crash they may not be on the disk yet
        self._next = self._first_free()
        if self._cursor.number is None:
            self._cursor.set(next(iter(self._segments), self._next) - 1)
        self.durable = self.acknowledged
        """The number of the last record that is on the disk or was dropped."""

    def _first_free(self) -> int:
        """Return the number of the next record. Removes the newest segments that have no records.

        A segment that cannot be read is renamed and counts as one lost record.
        """
        while self._segments:
            newest = max(self._segments)
            try:
                content = self._path(newest).read_bytes()
            except OSError:
                self._path(newest).rename(f"{self._path(newest)}{UNREADABLE}")
                del self._segments[newest]
                return max(newest, self._cursor.number or 0) + 1
            numbers = [record.number for record in scan(content)]
            if numbers:
                return max(numbers[-1], self._cursor.number or 0) + 1
            self._path(newest).unlink()
            del self._segments[newest]
        return (self._cursor.number or 0) + 1

    @property
    def acknowledged(self) -> int:
        """The last acknowledged number."""
        return self._cursor.number or 0

    @property
    def appended(self) -> int:
        """The number of the last record passed to `append`, whether it was accepted or not."""
        return self._next - 1

    @property
    def size(self) -> int:
        """The total size of all segments in bytes."""
        return sum(self._segments.values())

    # ---- writing

    def append(self, data: bytes) -> int:
        """Append a record and return its number. Does not wait for the disk.

        Raises OSError if it cannot be written and ValueError if it is too large; it is dropped then, and readers get a
        Gap.
        """
        number = self._next
        self._next += 1
        encoded = encode(OutboxRecord(number, data))
        newest = max(self._segments, default=0)
        if self._fd < 0 or self._segments[newest] + len(encoded) > self._segment_bytes:
            newest = self._begin_segment(number)
        while len(self._segments) > 1 and self.size + len(encoded) > self._max_bytes:
            self._drop(min(self._segments))
        self._write(newest, encoded)
        return number

    def _begin_segment(self, first: int) -> int:
        """Create a segment; also after a start, so that no record is written after one that a crash left incomplete."""
        fd = open_file(self._path(first), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd
        self._segments[first] = 0
        return first

    def _write(self, newest: int, encoded: bytes) -> None:
        written = 0
        try:
            written = os.write(self._fd, encoded)
            if written < len(encoded):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path(newest)))
        except OSError:
            with contextlib.suppress(OSError):  # readers skip a partial record
                os.ftruncate(self._fd, self._segments[newest])
                written = 0
            raise
        finally:
            self._segments[newest] += written
            self._unsynced.add(newest)

    def _drop(self, first: int) -> None:
        self._path(first).unlink(missing_ok=True)
        del self._segments[first]

    async def sync(self) -> int:
        """Write all accepted records to the disk; return the number of the last one. OSError if that fails."""
        last, acknowledged = self._next - 1, self.acknowledged
        unsynced, self._unsynced = self._unsynced, set()
        try:
            await self._run(partial(_sync_files, [self._path(first) for first in unsynced], self._cursor.path))
        except BaseException:
            self._unsynced |= unsynced
            raise
        self.durable = max(self.durable, last)
        for first in self._finished(acknowledged):
            self._drop(first)
        return self.durable

    def _finished(self, acknowledged: int) -> list[int]:
        """Return the segments without records after `acknowledged`, except the newest segment."""
        firsts = sorted(self._segments)
        return [first for first, after in pairwise(firsts) if after - 1 <= acknowledged]

    # ---- reading

    async def read(self, limit: int = 100) -> Batch:
        """Return at most `limit` records and gaps that were not acknowledged. Reading does not remove them."""
        durable = self.durable
        items: list[OutboxRecord | Gap] = []
        expected = self.acknowledged + 1
        firsts = sorted(self._segments)
        for first, after in zip(firsts, [*firsts[1:], durable + 1], strict=False):
            if after <= expected:
                continue
            for record in scan(await self._run(partial(_content, self._path(first)))):
                if not expected <= record.number <= durable:
                    continue
                if record.number > expected and len(items) < limit:
                    items.append(Gap(expected, record.number - 1))
                    expected = record.number
                if len(items) == limit:
                    return Batch(tuple(items), expected - 1)
                items.append(record)
                expected = record.number + 1
        if len(items) == limit:
            return Batch(tuple(items), expected - 1)
        if expected <= durable:
            items.append(Gap(expected, durable))
        return Batch(tuple(items), durable if items else 0)

    def acknowledge(self, last: int) -> None:
        """Mark all records up to the number `last` as processed. This is on the disk after the next `sync`."""
        if last > self.acknowledged:
            self._cursor.set(last)

    def close(self) -> None:
        """Close the files without waiting for the disk."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._cursor.close()

    def _path(self, first: int) -> Path:
        return self._folder / f"{first:020}{_SUFFIX}"


class _Cursor:
    """The last acknowledged number, in a file that is locked while the outbox is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = open_file(path, os.O_RDWR | os.O_CREAT, 0o600)
        if not try_lock_file(self._fd):
            os.close(self._fd)
            raise BlockingIOError(errno.EAGAIN, "another process has opened it", str(path))
        numbers = [_number(_read(self._fd, index)) for index in range(2)]
        self._slot = 0 if numbers[0] is None or (numbers[1] is not None and numbers[1] > numbers[0]) else 1
        """The slot to write next: the damaged or older one."""
        self.number = max((number for number in numbers if number is not None), default=None)

    def set(self, number: int) -> None:
        """Store a number; after a crash the former number may be read instead."""
        self.number = number
        head = number.to_bytes(8, "big")
        with contextlib.suppress(OSError):  # the acknowledged records are read again after a restart
            write_at(self._fd, _SLOT.pack(number, zlib.crc32(head)), self._slot * _SLOT.size)
        self._slot = 1 - self._slot

    def close(self) -> None:
        os.close(self._fd)


def _read(fd: int, slot: int) -> bytes:
    """Read a slot of the cursor; return b"" if the disk cannot read it."""
    try:
        return read_at(fd, _SLOT.size, slot * _SLOT.size)
    except OSError:
        return b""


def _number(slot: bytes) -> int | None:
    if len(slot) < _SLOT.size:
        return None
    number, crc = _SLOT.unpack(slot)
    return number if zlib.crc32(slot[:8]) == crc else None


def _segments(folder: Path) -> list[tuple[int, Path]]:
    paths = [(path.name.removesuffix(_SUFFIX), path) for path in folder.iterdir() if path.name.endswith(_SUFFIX)]
    return sorted((int(name), path) for name, path in paths if name.isdigit())


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # dropped in the meantime or not readable: readers get a gap in both cases
        return b""


def _sync_files(segments: list[Path], cursor: Path) -> None:
    """Sync files and their folder to the disk; segments that were dropped in the meantime are ignored."""
    for path in segments:
        with contextlib.suppress(FileNotFoundError):
            sync_file(path)
    sync_file(cursor)
    sync_folder(cursor.parent)

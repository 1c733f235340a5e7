"""A queue on disk: records are appended, read in batches and acknowledged, across crashes and power cuts.

What `append` has taken survives the end of the process (it is with the kernel). What `sync` has returned survives a
power cut (it is on the disk); only that is given to readers, so a number that was read never comes to mean another
record. A reader may see a record again after a crash, never miss one without a Gap in its place: numbers count up by
one, and whatever is missing between them was dropped or damaged.

The folder holds segments named by the number of their first record, and `cursor` with the number acknowledged last.
A segment is deleted when all of it was acknowledged, or, the oldest first, when the whole would grow beyond its bound.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import zlib
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

from telemetry.records import Record, encode, scan

MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes on disk beyond which the oldest segment is dropped: some 40,000 usual log messages."""

SEGMENT_BYTES: Final = 256 * 1024
"""Size at which a segment ends; as much is dropped, or read, at once."""

ASIDE: Final = ".unreadable"  # ending of a segment that the disk cannot read
_SUFFIX: Final = ".segment"
_SLOT = struct.Struct(">QI")  # number, its CRC-32; two slots are written in turn, so that one is always whole

T = TypeVar("T")


class Runner(Protocol):
    """Carries out blocking work: in a thread of its own (support.worker.Worker.run), or in place."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]:
        """What `function` returns or raises."""
        ...


class Gap(NamedTuple):
    """Records that were accepted, or offered, and are not there: numbers `first` to `last`."""

    first: int
    last: int

    @property
    def missing(self) -> int:
        """How many."""
        return self.last - self.first + 1


class Batch(NamedTuple):
    """What is next, in order. `last` is what to acknowledge; 0 if there is nothing."""

    items: tuple[Record | Gap, ...]
    last: int


class Outbox:
    """The queue in `folder`, which is made; one process at a time.

    Raises OSError if the folder cannot be used, BlockingIOError if another process uses it. `run` carries out what has
    to wait for the disk; one `sync` or `read` at a time.
    """

    def __init__(
        self, folder: Path, run: Runner, *, max_bytes: int = MAX_BYTES, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._run = run
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self._cursor = _Cursor(folder / "cursor")
        self._segments = {first: path.stat().st_size for first, path in _segments(folder)}  # size by first number
        self._fd = -1  # of the newest segment, once something was appended
        self._unsynced = set(self._segments)  # a crash may have left them with the kernel only
        self._next = self._first_free()
        if self._cursor.number is None:
            self._cursor.set(next(iter(self._segments), self._next) - 1)
        self.durable = self.acknowledged
        """The last record that is on disk, or was dropped."""

    def _first_free(self) -> int:
        """The number of the next record. A newest segment without a record in it is removed.

        One that the disk cannot read is set aside, and counts as one record that was lost.
        """
        while self._segments:
            newest = max(self._segments)
            try:
                content = self._path(newest).read_bytes()
            except OSError:
                self._path(newest).rename(f"{self._path(newest)}{ASIDE}")
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
        """The number that was acknowledged last."""
        return self._cursor.number or 0

    @property
    def appended(self) -> int:
        """The number of the last record that was offered, taken or not."""
        return self._next - 1

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(self._segments.values())

    # ---- writing

    def append(self, data: bytes) -> int:
        """Take one record; its number. Never waits for the disk.

        OSError if it cannot be written, ValueError if it is too large: then it is dropped, and readers see a Gap.
        """
        number = self._next
        self._next += 1
        encoded = encode(Record(number, data))
        newest = max(self._segments, default=0)
        if self._fd < 0 or self._segments[newest] + len(encoded) > self._segment_bytes:
            newest = self._begin(number)
        while len(self._segments) > 1 and self.size + len(encoded) > self._max_bytes:
            self._drop(min(self._segments))
        self._write(newest, encoded)
        return number

    def _begin(self, first: int) -> int:
        """Begin a segment: also after a start, so that nothing is written behind what a crash left half done."""
        fd = os.open(self._path(first), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
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
            with contextlib.suppress(OSError):  # a part that stays is passed over by readers
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
        """Bring to the disk what was taken so far; the number of the last record that is there. OSError if it fails."""
        last, acknowledged = self._next - 1, self.acknowledged
        unsynced, self._unsynced = self._unsynced, set()
        try:
            await self._run(partial(_to_disk, [self._path(first) for first in unsynced], self._cursor.path))
        except BaseException:
            self._unsynced |= unsynced
            raise
        self.durable = max(self.durable, last)
        for first in self._finished(acknowledged):
            self._drop(first)
        return self.durable

    def _finished(self, acknowledged: int) -> list[int]:
        """Segments that hold nothing beyond `acknowledged`, without the newest."""
        firsts = sorted(self._segments)
        return [first for first, after in pairwise(firsts) if after - 1 <= acknowledged]

    # ---- reading

    async def read(self, limit: int = 100) -> Batch:
        """At most `limit` records and gaps that were not acknowledged. Nothing is taken away by reading."""
        durable = self.durable
        items: list[Record | Gap] = []
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
        """Everything up to the number `last` was dealt with. It is on disk after the next `sync`."""
        if last > self.acknowledged:
            self._cursor.set(last)

    def close(self) -> None:
        """Release files, without waiting for the disk."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._cursor.close()

    def _path(self, first: int) -> Path:
        return self._folder / f"{first:020}{_SUFFIX}"


class _Cursor:
    """The number that was acknowledged last, in a file that is locked while the outbox is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise
        numbers = [_number(_read(self._fd, index)) for index in range(2)]
        self._slot = 0 if numbers[0] is None or (numbers[1] is not None and numbers[1] > numbers[0]) else 1
        """The slot to be written next: the one that is damaged or older."""
        self.number = max((number for number in numbers if number is not None), default=None)

    def set(self, number: int) -> None:
        """Change it; after a crash the former number may be there again."""
        self.number = number
        head = number.to_bytes(8, "big")
        with contextlib.suppress(OSError):  # then what was acknowledged is read once more after a restart
            os.pwrite(self._fd, _SLOT.pack(number, zlib.crc32(head)), self._slot * _SLOT.size)
        self._slot = 1 - self._slot

    def close(self) -> None:
        os.close(self._fd)


def _read(fd: int, slot: int) -> bytes:
    """What a slot of the cursor holds; nothing if the disk cannot read it."""
    try:
        return os.pread(fd, _SLOT.size, slot * _SLOT.size)
    except OSError:
        return b""


def _number(slot: bytes) -> int | None:
    if len(slot) < _SLOT.size:
        return None
    number, crc = _SLOT.unpack(slot)
    return number if zlib.crc32(slot[:8]) == crc else None


def _segments(folder: Path) -> list[tuple[int, Path]]:
    found = [(one.name.removesuffix(_SUFFIX), one) for one in folder.iterdir() if one.name.endswith(_SUFFIX)]
    return sorted((int(name), path) for name, path in found if name.isdigit())


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # dropped meanwhile, or the disk cannot read it: a gap either way
        return b""


def _to_disk(segments: list[Path], cursor: Path) -> None:
    """Bring files and their folder to the disk; a segment that was dropped meanwhile does not count."""
    for path in segments:
        with contextlib.suppress(FileNotFoundError):
            _sync_one(path)
    _sync_one(cursor)
    _sync_one(cursor.parent)


def _sync_one(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

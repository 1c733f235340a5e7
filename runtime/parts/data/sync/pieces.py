"""Reading a closed capture file in pieces for upload, with bounded memory. Blocking."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import DecodeError

from rpc.api import messages
from runtime.parts.data.files.frames import Damaged, frames
from runtime.parts.data.sync.upload import UNARY
from support.files import open_file, read_at

BATCH: Final = 512 * 1024  # bytes of readings in one message; must never change, so that repeated messages are equal
_BINARY_TAG: Final = 3 << 3 | 2  # field 3 of SensorData, length-delimited
_METADATA_TAG: Final = 1 << 3 | 2
_WHOLE_HEADER: Final = 64 * 1024  # bytes of the first attempt to read the header


@dataclass(frozen=True, slots=True)
class Batch:
    """Readings for one message. `end` is the offset after them."""

    end: int
    readings: list[Any] = field(default_factory=list)  # SensorData


@dataclass(frozen=True, slots=True)
class Large:
    """A binary reading that is too large for a message. Its `size` bytes are at `offset` of the file."""

    end: int
    metadata: Any  # SensorMetadata
    offset: int
    size: int


class CaptureReader:
    """Reads one file; the caller closes it. Methods raise Damaged (INVALID) if the file is malformed."""

    def __init__(self, path: Path) -> None:
        """Open the file and read its header. Raises OSError or Damaged."""
        self._fd = open_file(path, os.O_RDONLY)
        try:
            self._sync = messages.load("app.datasync.v1.data_sync_pb2")
            self.size = os.fstat(self._fd).st_size
            self.start, header = next(self._frames(0, _WHOLE_HEADER), (0, b""))
            with _parsed("DataCaptureMetadata", 0):
                self.header = self._sync.DataCaptureMetadata.FromString(header)
            if not self.header.method_name or not self.header.type:
                raise Damaged(0, "the file does not begin with DataCaptureMetadata")
            self.binary = self.header.type == self._sync.DATA_TYPE_BINARY_SENSOR
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def next(self, offset: int) -> Batch | Large | None:
        """Return the piece at `offset`, or None at the end of the file.

        `offset` is `start` or the end of the previous piece.
        """
        if offset >= self.size:
            return None
        if self.binary:
            end, begin = self._extent(offset)
            if end - begin > UNARY:
                return self._large(begin, end)
            return Batch(end, [self._reading(self.read(begin, end - begin), offset)])
        readings: list[Any] = []
        for end, message in self._frames(offset, BATCH):
            readings.append(self._reading(message, offset))
            offset = end
        return Batch(offset, readings)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes; fewer only at the end of the file."""
        parts: list[bytes] = []
        while size > 0 and (part := read_at(self._fd, size, offset)):
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return b"".join(parts)

    def _frames(self, offset: int, limit: int) -> Iterator[tuple[int, bytes]]:
        """Yield whole messages from `offset` on, each with the offset after it: about `limit` bytes, at least one."""
        while True:
            data, count = self.read(offset, limit), 0
            try:
                for end, message in frames(data):
                    count += 1
                    yield offset + end, message
                return
            except Damaged as damage:
                if damage.cut and count and offset + len(data) < self.size:
                    return
                if not damage.cut or count or offset + len(data) >= self.size:
                    if count:  # send the whole messages first
                        return
                    raise Damaged(offset + damage.offset, damage.message.partition(": ")[2], cut=damage.cut) from None
            limit *= 2  # the first message is longer than that

    def _reading(self, message: bytes, offset: int) -> Any:
        with _parsed("SensorData", offset):
            reading = self._sync.SensorData.FromString(message)
        if reading.WhichOneof("data") is None:
            raise Damaged(offset, "not a SensorData message")
        return reading

    # ---- readings that are not read at once

    def _extent(self, offset: int) -> tuple[int, int]:
        """Return end and begin of the message whose length is at `offset`."""
        size, begin = self._varint(offset)
        if not size or begin + size > self.size:
            raise Damaged(offset, "the message is incomplete", cut=bool(size))
        return begin + size, begin

    def _large(self, begin: int, end: int) -> Large:
        metadata = self._sync.SensorMetadata()
        location: tuple[int, int] | None = None
        position = begin
        while position < end:
            tag, position = self._varint(position)
            size, position = self._varint(position)
            if tag & 7 != 2 or position + size > end:
                raise Damaged(begin, "not a SensorData message")
            if tag == _METADATA_TAG:
                with _parsed("SensorMetadata", position):
                    metadata = self._sync.SensorMetadata.FromString(self.read(position, size))
            elif tag == _BINARY_TAG:
                location = position, size
            position += size
        if location is None:
            raise Damaged(begin, "the message has no binary reading")
        return Large(end, metadata, *location)

    def _varint(self, offset: int) -> tuple[int, int]:
        value = 0
        for index, byte in enumerate(self.read(offset, 10)):
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return value, offset + index + 1
        raise Damaged(offset, "the length of a message is not valid")


@contextmanager
def _parsed(what: str, offset: int) -> Iterator[None]:
    try:
        yield
    except DecodeError:
        raise Damaged(offset, f"not a {what} message") from None

"""Reading of capture files, including open, truncated and damaged ones. Blocking; does not need a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import DecodeError

from rpc.api import messages
from runtime.parts.data.files.frames import Damaged, frames
from runtime.parts.data.files.names import CLOSED, FAILED, OPEN
from support.files import open_file, try_lock_file
from support.foreign import walk

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Content:
    """The readable content of a file. `header` is DataCaptureMetadata, `readings` are SensorData."""

    path: Path
    header: Any = None
    readings: list[Any] = field(default_factory=list)
    size: int = 0  # bytes
    end: int = 0  # offset after the last whole message
    damage: Damaged | None = None

    @property
    def cut(self) -> bool:
        """Whether the file only ends too early, as after a power cut during a write."""
        return self.damage is not None and self.damage.cut


def read_capture_file(path: Path) -> Content:
    """Read a file up to its end or the first damage. Raises OSError if it cannot be read at all."""
    return parse(path, path.read_bytes())


def parse(path: Path, data: bytes) -> Content:
    """Parse the bytes of a file, up to the end or the first damage."""
    sync = messages.load("app.datasync.v1.data_sync_pb2")
    content = Content(path, size=len(data))
    try:
        for end, message in frames(data):
            if content.header is None:
                content.header = _header(sync, message)
            else:
                content.readings.append(_reading(sync, message, content.end))
            content.end = end
        if content.header is None:
            raise Damaged(0, "the file is empty", cut=True)
    except Damaged as damage:
        content.damage = damage
    return content


def _header(sync: Any, message: bytes) -> Any:
    try:
        header = sync.DataCaptureMetadata.FromString(message)
    except DecodeError:
        raise Damaged(0, "the file does not begin with DataCaptureMetadata") from None
    if not header.method_name or not header.type:
        raise Damaged(0, "the file does not begin with DataCaptureMetadata")
    return header


def _reading(sync: Any, message: bytes, offset: int) -> Any:
    try:
        reading = sync.SensorData.FromString(message)
    except DecodeError:
        raise Damaged(offset, "not a SensorData message") from None
    if not reading.HasField("metadata") or reading.WhichOneof("data") is None:
        raise Damaged(offset, "not a SensorData message")
    return reading


def capture_files(folder: Path) -> Iterator[Path]:
    """Yield all capture files below a folder, including open ones, in the order of their paths; not those in FAILED."""
    for parent, folders, names in walk(folder):
        if parent == folder and FAILED in folders:
            folders.remove(FAILED)
        folders.sort()
        for name in sorted(names):
            if name.endswith((OPEN, CLOSED)):
                yield Path(parent, name)


def is_being_written(path: Path) -> bool:
    """Return whether a running process has the file open for writing."""
    if path.suffix != OPEN:
        return False
    try:
        fd = open_file(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not try_lock_file(fd, shared=True)
    except OSError:
        return True
    finally:
        os.close(fd)


def moment(timestamp: Any) -> datetime:
    """Convert a Timestamp to an aware datetime, truncated to microseconds."""
    return _EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)

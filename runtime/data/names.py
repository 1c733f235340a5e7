"""Where captured data lies: folders and files of the published layout. Pure.

`<capture_dir>/rdk_component_sensor/<resource>/<Method>/2026-11-21T09_46_35.123456Z.capture`; while a file is being
written it ends in `.prog` instead.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import Final

OPEN: Final = ".prog"  # being written, or left behind by a process that was killed
CLOSED: Final = ".capture"  # whole, and on the disk
FAILED: Final = "failed"  # folder below the capture folder for what cannot be read
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def safe(text: str) -> str:
    """A name as one part of a path: colons and separators become underscores, as in the published layout."""
    cleaned = "".join("_" if char in ':/\\"*?<>|' or ord(char) < 32 else char for char in text)
    return cleaned if cleaned.strip(".") else "_" * max(1, len(cleaned))


def folder_of(component_type: str, component_name: str, method: str) -> PurePath:
    """Where readings of a method lie, below the capture folder."""
    return PurePath(safe(component_type), safe(component_name), safe(method))


def stem_of(microseconds: int) -> str:
    """A file's name, without its ending, for a time in microseconds since 1970."""
    moment = _EPOCH + timedelta(microseconds=microseconds)
    return safe(moment.isoformat(timespec="microseconds").replace("+00:00", "Z"))

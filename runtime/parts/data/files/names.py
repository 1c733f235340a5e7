"""Names of folders and files of captured data, in the published layout. Pure.

Example: `<capture_dir>/rdk_component_sensor/<resource>/<Method>/2026-11-21T09_46_35.123456Z.capture`. While a file is
being written, its suffix is `.prog`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import Final

OPEN: Final = ".prog"  # being written, or abandoned by a process that was killed
CLOSED: Final = ".capture"  # complete and synchronized to disk
FAILED: Final = "failed"  # folder below the capture folder for damaged and refused files
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def safe_part(text: str) -> str:
    """Convert a name to one part of a path: special characters become underscores, as in the published layout."""
    cleaned = "".join("_" if char in ':/\\"*?<>|' or ord(char) < 32 else char for char in text)
    return cleaned if cleaned.strip(".") else "_" * max(1, len(cleaned))


def folder_of(component_type: str, component_name: str, method: str) -> PurePath:
    """Return the folder for readings of a method, relative to the capture folder."""
    return PurePath(safe_part(component_type), safe_part(component_name), safe_part(method))


def stem_of(microseconds: int) -> str:
    """Return a file name without suffix for a time in microseconds since 1970."""
    moment = _EPOCH + timedelta(microseconds=microseconds)
    return safe_part(moment.isoformat(timespec="microseconds").replace("+00:00", "Z"))

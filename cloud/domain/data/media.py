"""MIME types, from the machine's statement, the file name extension or the first bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

UNKNOWN: Final = "application/octet-stream"

TYPES: Final[Mapping[str, str]] = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pcd": "pointcloud/pcd",
    ".mp4": "video/mp4",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".txt": "text/plain",
    ".log": "text/plain",
    ".csv": "text/csv",
    ".json": "application/json",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".xml": "application/xml",
    ".pdf": "application/pdf",
    ".zip": "application/zip",
    ".gz": "application/gzip",
}
"""IANA types by extension; `pointcloud/pcd` is the type of the published clients."""

EXTENSIONS: Final[Mapping[str, str]] = {mime: extension for extension, mime in reversed(list(TYPES.items()))}

_BEGINNINGS: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (4, b"ftyp", "video/mp4"),
    (8, b"WAVE", "audio/wav"),
    (0, b"# .PCD", "pointcloud/pcd"),
    (0, b"VERSION .7", "pointcloud/pcd"),
)

PICTURES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Types that browsers display as images and cannot execute."""


def mime_of(stated: str, extension: str, beginning: bytes) -> str:
    """Return the MIME type in lower case without parameters; UNKNOWN if it cannot be determined."""
    stated = stated.partition(";")[0].strip().lower()
    if stated.count("/") == 1 and stated.isascii() and stated.isprintable() and " " not in stated:
        return stated
    if by_extension := TYPES.get(extension.lower()):
        return by_extension
    for offset, magic, mime in _BEGINNINGS:
        if beginning[offset : offset + len(magic)] == magic:
            return mime
    return UNKNOWN


def extension_of(stated: str, name: str, mime: str) -> str:
    """Return the extension with its dot: the stated one, else that of the name, else the usual one of the type."""
    extension = stated or PurePosixPath(name).suffix or EXTENSIONS.get(mime, "")
    return extension if not extension or extension.startswith(".") else f".{extension}"

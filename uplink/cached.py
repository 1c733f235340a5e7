"""The cached configuration of a machine that is managed by a cloud, for a start without the cloud.

It is used only at the start. A configuration is saved once everything that it needs is available; after a power cut the
file contains either the old or the new configuration completely. Only its owner can read the file: it contains secrets.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog

from support import RunBlocking
from support.files import replace_file
from telemetry.logs.logger_names import CONFIG

UNREADABLE: Final = ".unreadable"  # suffix of a cached configuration that could not be used
_NOT_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_PART_ID = re.compile(r"[A-Za-z0-9][\w-]*\Z")


class Cached(msgspec.Struct, frozen=True):
    """The content of a cache file."""

    saved: datetime
    sha256: str  # of `document`
    document: msgspec.Raw  # as the cloud sent it: JSON


def path_of(home: Path, part: str) -> Path:
    """Return the path of the cached configuration of a part; ValueError for an id that is not safe in a path."""
    if not _PART_ID.match(part):
        raise ValueError(f"{part!r} is not a valid id of a machine part: expected letters, digits, '-' and '_'")
    return home / f"cached_cloud_config_{part}.json"


async def save(path: Path, document: bytes, run: RunBlocking) -> None:
    """Replace the cached configuration by the JSON text `document`; when this returns, it is on the disk.

    `run` executes the blocking calls. Raises OSError if it cannot be written and ValueError if it is not JSON; the
    former configuration stays in both cases.
    """
    try:
        raw = msgspec.json.decode(document, type=msgspec.Raw)
    except _NOT_JSON as error:
        raise ValueError(f"the configuration is not valid JSON and is not cached: {error}") from None
    content = msgspec.json.encode(Cached(datetime.now(UTC), _digest(bytes(raw)), raw))
    await run(partial(replace_file, path, content))


def load(path: Path) -> Cached | None:
    """Load the cached configuration; return None if there is none that can be used.

    A file that is damaged or not a cached configuration is renamed by appending UNREADABLE, with a warning.
    """
    log = structlog.get_logger(CONFIG)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("the cached configuration cannot be read", path=str(path), reason=error.strerror)
        return None
    try:
        cached = msgspec.json.decode(content, type=Cached)
        if _digest(bytes(cached.document)) == cached.sha256:
            return cached
        reason = "it was modified or damaged"
    except _NOT_JSON as error:
        reason = str(error)
    renamed = path.with_name(path.name + UNREADABLE)
    with contextlib.suppress(OSError):
        path.replace(renamed)
    log.warning("the cached configuration cannot be used; it was renamed", path=str(renamed), reason=reason)
    return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

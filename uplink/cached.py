"""The last good configuration of a machine that is managed by a cloud, for a start without the cloud.

Used at the start only. A configuration is saved when everything it needs is there; after a power cut the file has the
configuration before or the one after, whole. The file is readable by its owner only: it has secrets.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog

from telemetry.names import CONFIG
from telemetry.outbox import Runner

ASIDE: Final = ".unreadable"  # ending of a cached configuration that could not be used
_NOT_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_PART_ID = re.compile(r"[A-Za-z0-9][\w-]*\Z")


class Cached(msgspec.Struct, frozen=True):
    """What a cache file holds."""

    saved: datetime
    sha256: str  # of `document`
    document: msgspec.Raw  # as the cloud sent it: JSON


def path_of(home: Path, part: str) -> Path:
    """Where the configuration of a part is kept. ValueError for an id that no cloud gives: it becomes a file's name."""
    if not _PART_ID.match(part):
        raise ValueError(f"{part!r} is not the id of a machine part: letters, digits, '-' and '_' only")
    return home / f"cached_cloud_config_{part}.json"


async def save(path: Path, document: bytes, run: Runner) -> None:
    """Replace the cached configuration by `document`, which is JSON; when this returns, it is on the disk.

    `run` carries out what waits for the disk. Raises OSError if it cannot be written, ValueError if it is not JSON;
    then the former one stays.
    """
    try:
        raw = msgspec.json.decode(document, type=msgspec.Raw)
    except _NOT_JSON as error:
        raise ValueError(f"a configuration that is not JSON is not kept: {error}") from None
    content = msgspec.json.encode(Cached(datetime.now(UTC), _digest(bytes(raw)), raw))
    await run(partial(replace, path, content))


def load(path: Path) -> Cached | None:
    """The cached configuration; None if there is none that can be used.

    A file that cannot be read, is damaged or is no such file is set aside, beside the place of the good one, and a
    warning says why.
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
        reason = "it was changed or damaged"
    except _NOT_JSON as error:
        reason = str(error)
    aside = path.with_name(path.name + ASIDE)
    with contextlib.suppress(OSError):
        path.replace(aside)
    log.warning("the cached configuration cannot be used; it was set aside", path=str(aside), reason=reason)
    return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def replace(path: Path, content: bytes) -> None:
    """A file for its owner only: written beside it, brought to the disk, renamed, the rename brought to the disk."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)  # of a write that was cut short; whatever its mode was
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

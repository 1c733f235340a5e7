"""Sending files to a client, one after the other, each acknowledged before the next."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from engine import CopyMessage, CopyMetadata, CopySource, FileData
from schema import ErrorKind, MachineError
from support import Worker

CHUNK: Final = 64 * 1024  # bytes per message


@dataclass(frozen=True, slots=True)
class _Entry:
    """One file or directory to send."""

    path: Path
    name: str  # name for the client
    status: os.stat_result

    @property
    def is_dir(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


async def files_from(
    paths: Sequence[Path], acks: AsyncIterator[bool], *, recursive: bool, preserve: bool, log: Any
) -> AsyncGenerator[CopyMessage, None]:
    """Yield the kind of `paths`, then each file in pieces with eof at its end, waiting for one of `acks` after each.

    MachineError for a path that does not exist, cannot be read, or is a directory without `recursive`.
    """
    if not paths:
        raise MachineError("the request has no paths", kind=ErrorKind.INVALID)
    worker = Worker("files for a client")
    async with worker.opened():
        roots = [await worker.run(partial(_root_entry, path, recursive)) for path in paths]
        kind = CopySource.SINGLE_DIRECTORY if roots[0].is_dir else CopySource.SINGLE_FILE
        yield CopyMessage(metadata=CopyMetadata(kind if len(roots) == 1 else CopySource.MULTIPLE_FILES))
        skipped: list[Path] = []
        for root in roots:
            entries = _walk(root, skipped)
            while (entry := await worker.run(partial(next, entries, None))) is not None:
                file = None if entry.is_dir else await worker.run(partial(_open, entry.path))
                try:
                    yield CopyMessage(file_data=_head(entry, preserve=preserve))
                    while file is not None and (data := await worker.run(partial(os.read, file, CHUNK))):
                        yield CopyMessage(file_data=FileData(data=data))
                finally:
                    if file is not None:
                        worker.post(partial(os.close, file))
                yield CopyMessage(file_data=FileData(eof=True))
                if await anext(acks, None) is None:
                    return  # the client has closed its stream
        if skipped:
            log.warning(
                "skipped paths that are neither files nor directories", count=len(skipped), first=str(skipped[0])
            )


def _root_entry(path: Path, recursive: bool) -> _Entry:
    try:
        path = path.resolve(strict=True) if path.name in ("", "..") else path
        status = path.stat()
    except OSError as error:
        kind = ErrorKind.NOT_FOUND if isinstance(error, FileNotFoundError) else ErrorKind.PRECONDITION
        raise MachineError(f"{path}: {error.strerror}", kind=kind) from error
    if not path.name:
        raise MachineError(f"{path} has no file name to send", kind=ErrorKind.INVALID, remedy="request its contents")
    entry = _Entry(path, path.name, status)
    if entry.is_dir and not recursive:
        raise MachineError(
            f"{path} is a directory", kind=ErrorKind.PRECONDITION, remedy="allow recursion to copy its contents"
        )
    if not entry.is_dir and not stat.S_ISREG(status.st_mode):
        raise MachineError(f"{path} is neither a file nor a directory", kind=ErrorKind.PRECONDITION)
    return entry


def _walk(root: _Entry, skipped: list[Path]) -> Iterator[_Entry]:
    """Yield `root` and everything below it, directories before their content. Iteration blocks."""
    pending = [root]
    while pending:
        entry = pending.pop()
        yield entry
        if not entry.is_dir:
            continue
        children = []
        try:
            names = sorted(os.listdir(entry.path), reverse=True)
        except OSError as error:
            raise MachineError(f"{entry.path}: {error.strerror}", kind=ErrorKind.PRECONDITION) from error
        for name in names:
            path = entry.path / name
            try:
                status = path.stat()
            except OSError:  # a broken link
                skipped.append(path)
                continue
            is_file, is_dir = stat.S_ISREG(status.st_mode), stat.S_ISDIR(status.st_mode)
            if is_file or (is_dir and not path.is_symlink()):  # links to directories may be circular
                children.append(_Entry(path, f"{entry.name}/{name}", status))
            else:
                skipped.append(path)
        pending.extend(children)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise MachineError(f"{path} cannot be read: {error.strerror}", kind=ErrorKind.PRECONDITION) from error


def _head(entry: _Entry, *, preserve: bool) -> FileData:
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        raise MachineError(f"the name {entry.name!r} is not valid UTF-8", kind=ErrorKind.PRECONDITION) from None
    status = entry.status
    return FileData(
        name=entry.name,
        size=0 if entry.is_dir else status.st_size,
        is_dir=entry.is_dir,
        mode=stat.S_IMODE(status.st_mode) & 0o777 if preserve else None,
        mod_time=datetime.fromtimestamp(status.st_mtime, UTC) if preserve else None,
    )

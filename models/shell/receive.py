"""Receiving files from a client. Files stay below the destination and appear only when complete."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from engine import CopySource, FileData
from schema import ErrorKind, MachineError
from support import Worker

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODES: Final = 0o777  # set-user-id and similar bits are not accepted


async def files_to(
    destination: Path, source: CopySource, files: AsyncIterator[FileData], *, preserve: bool
) -> AsyncGenerator[bool, None]:
    """Write `files` and yield True after each. MachineError names a file that cannot be written, and the reason.

    Absolute names, and names with `..` or through symbolic links below the destination, are rejected. An incomplete
    file is removed when the generator ends.
    """
    worker = Worker("files of a client")
    async with worker.opened():
        target = await worker.run(partial(_Target.of, destination, source, preserve))
        try:
            async for piece in files:
                if await worker.run(partial(target.take, piece)):
                    yield True
            await worker.run(target.finish)
        finally:
            worker.post(target.close)


@dataclass
class _Target:
    """The destination of files. All methods block."""

    root: Path  # an existing directory; names are relative to it
    rename: str  # replaces the first component of names; empty: no change
    directories: bool  # whether names may have several components
    preserve: bool
    current: _File | None = None
    times: list[tuple[Path, int | None, datetime | None]] = field(default_factory=list)  # of directories, set last

    @classmethod
    def of(cls, destination: Path, source: CopySource, preserve: bool) -> _Target:
        """Create a target by the rules of cp: into an existing directory, else under that name."""
        directories = source is not CopySource.SINGLE_FILE
        if destination.is_dir():
            return cls(destination, "", directories, preserve)
        if source is CopySource.MULTIPLE_FILES:
            raise MachineError(
                f"{destination} is not a directory",
                kind=ErrorKind.PRECONDITION,
                remedy="use an existing directory for several files",
            )
        if destination.exists() and directories:
            raise MachineError(f"{destination} is a file, not a directory", kind=ErrorKind.PRECONDITION)
        if destination.is_symlink() and not directories:
            destination = destination.resolve()
        if not destination.parent.is_dir():
            raise MachineError(
                f"{destination.parent} is not a directory", kind=ErrorKind.PRECONDITION, remedy="create it first"
            )
        return cls(destination.parent, destination.name, directories, preserve)

    def take(self, piece: FileData) -> bool:
        """Write one piece; return True if its file is complete."""
        try:
            if self.current is None:
                self.current = self._begin(piece)
            if piece.data:
                self.current.write(piece.data)
            if not piece.eof:
                return False
            self.current.complete()
            self.current = None
            return True
        except OSError as error:
            path = self.current.path if self.current is not None else self.root / piece.name
            raise MachineError(f"{path} cannot be written: {error.strerror}", kind=ErrorKind.PRECONDITION) from error

    def finish(self) -> None:
        """Set the modes and times of directories after everything is written. INVALID if a file is incomplete."""
        if self.current is not None:
            raise MachineError(f"{self.current.path} ended before it was complete", kind=ErrorKind.INVALID)
        for path, mode, modified in reversed(self.times):
            if mode is not None:
                path.chmod(mode & _MODES)
            if modified is not None:
                os.utime(path, (modified.timestamp(), modified.timestamp()))

    def close(self) -> None:
        """Remove an incomplete file."""
        if self.current is not None:
            self.current.close()

    def _begin(self, piece: FileData) -> _File:
        parts = _parts(piece.name, nested=self.directories)
        if self.rename:
            parts[0] = self.rename
        mode, modified = (piece.mode, piece.mod_time) if self.preserve else (None, None)
        parent = _descend(self.root, parts[:-1])
        path = self.root.joinpath(*parts)
        if not piece.is_dir:
            return _File(path, parent, mode, modified)
        try:
            os.mkdir(parts[-1], dir_fd=parent)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode):
                raise
        finally:
            os.close(parent)
        self.times.append((path, mode, modified))
        return _File(path, None, None, None)


class _File:
    """One file in transfer, with a temporary name until it is complete. A directory has no descriptor."""

    def __init__(self, path: Path, parent: int | None, mode: int | None, modified: datetime | None) -> None:
        self.path = path
        self._parent = parent
        self._mode = mode
        self._modified = modified
        self._temporary_name = f".{path.name[:200]}.{secrets.token_hex(4)}.part"
        self._descriptor = -1
        if parent is not None:
            try:
                if path.is_dir() and not path.is_symlink():
                    raise IsADirectoryError(0, "a directory of that name exists")
                self._descriptor = os.open(self._temporary_name, _NEW_FILE, 0o666, dir_fd=parent)
            except BaseException:
                os.close(parent)
                self._parent = None
                raise

    def write(self, data: bytes) -> None:
        if self._descriptor < 0:
            raise IsADirectoryError(0, "a directory has no content")
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def complete(self) -> None:
        if self._parent is None:
            return
        if self._mode is not None:
            os.fchmod(self._descriptor, self._mode & _MODES)
        if self._modified is not None:
            os.utime(self._descriptor, (self._modified.timestamp(), self._modified.timestamp()))
        os.replace(self._temporary_name, self.path.name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
        self._temporary_name = ""
        self.close()

    def close(self) -> None:
        if self._parent is None:
            return
        if self._temporary_name:
            os.unlink(self._temporary_name, dir_fd=self._parent)
        os.close(self._descriptor)
        os.close(self._parent)
        self._parent = None


def _parts(name: str, *, nested: bool) -> list[str]:
    """Return the components of a received name. MachineError (INVALID) if it leads out of the destination."""
    parts = name.split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise MachineError(
            f"{name!r} is not a name below the destination",
            kind=ErrorKind.INVALID,
            remedy="send a relative name, such as folder/file",
        )
    return parts if nested else parts[-1:]


def _descend(root: Path, parts: list[str]) -> int:
    """Open the directory `parts` below `root`, created if missing; never follows symbolic links. Caller closes it."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            try:
                child = os.open(part, _DIRECTORY, dir_fd=descriptor)
            except FileNotFoundError:
                os.mkdir(part, dir_fd=descriptor)
                child = os.open(part, _DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = child
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor

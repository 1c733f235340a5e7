"""Files of a client onto the machine: names stay below the destination, a file is there whole or not at all."""

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

from runtime.services.shell import CopySource, FileData
from schema.errors import ErrorKind, MachineError
from support.worker import Worker

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODES: Final = 0o777  # set-user-id and the like do not come from elsewhere


async def files_to(
    destination: Path, source: CopySource, files: AsyncIterator[FileData], *, preserve: bool
) -> AsyncGenerator[bool, None]:
    """Write `files` and yield True after each. MachineError names what cannot be written, and why.

    Names with `..`, from the root or through symbolic links below the destination are refused. What was not complete
    when this ends is gone.
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
    """Where files go. All methods block."""

    root: Path  # an existing directory: names are below it
    rename: str  # what the first component of names becomes; empty: it stays
    directories: bool  # names may have several components
    preserve: bool
    open: _File | None = None
    times: list[tuple[Path, int | None, datetime | None]] = field(default_factory=list)  # of directories, for the end

    @classmethod
    def of(cls, destination: Path, source: CopySource, preserve: bool) -> _Target:
        """By the rules of cp: into an existing directory, else as that name."""
        directories = source is not CopySource.SINGLE_FILE
        if destination.is_dir():
            return cls(destination, "", directories, preserve)
        if source is CopySource.MULTIPLE_FILES:
            raise MachineError(
                f"{destination} is not a directory",
                kind=ErrorKind.PRECONDITION,
                remedy="several files need a directory that exists",
            )
        if destination.exists() and directories:
            raise MachineError(f"{destination} is a file, not a directory", kind=ErrorKind.PRECONDITION)
        if destination.is_symlink() and not directories:
            destination = destination.resolve()
        if not destination.parent.is_dir():
            raise MachineError(
                f"{destination.parent} is not a directory", kind=ErrorKind.PRECONDITION, remedy="make it first"
            )
        return cls(destination.parent, destination.name, directories, preserve)

    def take(self, piece: FileData) -> bool:
        """Take one piece; True when its file is complete."""
        try:
            if self.open is None:
                self.open = self._begin(piece)
            if piece.data:
                self.open.write(piece.data)
            if not piece.eof:
                return False
            self.open.complete()
            self.open = None
            return True
        except OSError as error:
            where = self.open.path if self.open is not None else self.root / piece.name
            raise MachineError(f"{where} cannot be written: {error.strerror}", kind=ErrorKind.PRECONDITION) from error

    def finish(self) -> None:
        """Give directories their modes and times, now that nothing is written into them any more."""
        if self.open is not None:
            raise MachineError(f"{self.open.path} ended before it was complete", kind=ErrorKind.INVALID)
        for path, mode, moment in reversed(self.times):
            if mode is not None:
                path.chmod(mode & _MODES)
            if moment is not None:
                os.utime(path, (moment.timestamp(), moment.timestamp()))

    def close(self) -> None:
        """Remove what is not complete."""
        if self.open is not None:
            self.open.close()

    def _begin(self, piece: FileData) -> _File:
        parts = _parts(piece.name, nested=self.directories)
        if self.rename:
            parts[0] = self.rename
        mode, moment = (piece.mode, piece.mod_time) if self.preserve else (None, None)
        parent = _descend(self.root, parts[:-1])
        path = self.root.joinpath(*parts)
        if not piece.is_dir:
            return _File(path, parent, mode, moment)
        try:
            os.mkdir(parts[-1], dir_fd=parent)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode):
                raise
        finally:
            os.close(parent)
        self.times.append((path, mode, moment))
        return _File(path, None, None, None)


class _File:
    """One file on its way: under a name of its own until it is complete. A directory has no descriptor."""

    def __init__(self, path: Path, parent: int | None, mode: int | None, moment: datetime | None) -> None:
        self.path = path
        self._parent = parent
        self._mode = mode
        self._moment = moment
        self._part = f".{path.name[:200]}.{secrets.token_hex(4)}.part"
        self._descriptor = -1
        if parent is not None:
            try:
                if path.is_dir() and not path.is_symlink():
                    raise IsADirectoryError(0, "there is a directory of that name")
                self._descriptor = os.open(self._part, _NEW_FILE, 0o666, dir_fd=parent)
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
        if self._moment is not None:
            os.utime(self._descriptor, (self._moment.timestamp(), self._moment.timestamp()))
        os.replace(self._part, self.path.name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
        self._part = ""
        self.close()

    def close(self) -> None:
        if self._parent is None:
            return
        if self._part:
            os.unlink(self._part, dir_fd=self._parent)
        os.close(self._descriptor)
        os.close(self._parent)
        self._parent = None


def _parts(name: str, *, nested: bool) -> list[str]:
    """The components of a name as it was sent. MachineError (INVALID) if it leads out of the destination."""
    parts = name.split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise MachineError(
            f"{name!r} is not a name below the destination", kind=ErrorKind.INVALID, remedy="send such as folder/file"
        )
    return parts if nested else parts[-1:]


def _descend(root: Path, parts: list[str]) -> int:
    """A descriptor of the directory `parts` below `root`, made where it is missing; never through a symbolic link."""
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            try:
                below = os.open(part, _DIRECTORY, dir_fd=here)
            except FileNotFoundError:
                os.mkdir(part, dir_fd=here)
                below = os.open(part, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
    except BaseException:
        os.close(here)
        raise
    return here

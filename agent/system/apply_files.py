"""Write and remove the managed files below a root folder. The calls block.

Each method of `ManagedDisk` that changes something is one durable operation. The power may fail between any two of
them, or in one of them: the next `apply_files` continues.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from agent.system.managed_files import (
    TEMPORARY_SUFFIX,
    CurrentFile,
    FilePlan,
    Manifest,
    WantedFile,
    manifest_text,
    parse_manifest,
    parts_of,
    plan_files,
    sha256,
)
from schema import ErrorKind, MachineError

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_OURS: Final = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ELOOP)  # of a folder that is to be removed
_LARGEST: Final = 1 << 20  # bytes of a managed file; a larger one is not ours


class ManagedDisk:
    """Files below a root folder. Follows no symbolic link below the root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> tuple[bytes, int] | None:
        """Return content and mode of a regular file; None if it does not exist. OSError if it is something else."""
        try:
            with self._parent(path) as (folder, name), open(os.open(name, _READ, dir_fd=folder), "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(f"{self.root / path} is not a regular file")
                return file.read(_LARGEST + 1), stat.S_IMODE(status.st_mode)
        except FileNotFoundError:
            return None

    def current(self, path: str) -> CurrentFile | None:
        """Return what is at `path`; None if nothing is."""
        try:
            content = self.read(path)
        except OSError:
            return CurrentFile()
        return None if content is None else CurrentFile(sha256(content[0]), content[1])

    def is_folder(self, path: str) -> bool:
        """Return whether `path` is a folder that can be reached without symbolic links."""
        try:
            with self._parent(path) as (folder, name):
                return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except OSError:
            return False

    def write(self, path: str, content: bytes, mode: int) -> None:
        """Create a new file."""
        with self._parent(path) as (folder, name):
            with open(os.open(name, _CREATE, 0o600, dir_fd=folder), "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())

    def rename(self, path: str, new_name: str) -> None:
        """Rename a file within its folder, and replace an existing one."""
        with self._parent(path) as (folder, name):
            os.replace(name, new_name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        with contextlib.suppress(FileNotFoundError), self._parent(path) as (folder, name):
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    def make_folder(self, path: str) -> None:
        """Create a folder if it does not exist."""
        with contextlib.suppress(FileExistsError), self._parent(path) as (folder, name):
            os.mkdir(name, 0o755, dir_fd=folder)
            os.fsync(folder)

    def remove_folder(self, path: str) -> None:
        """Remove a folder if it exists."""
        with contextlib.suppress(FileNotFoundError), self._parent(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)
            os.fsync(folder)

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        *folders, name = parts_of(path)
        descriptor = os.open(self.root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for folder in folders:
                inner = os.open(folder, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor, name
        finally:
            os.close(descriptor)


def apply_files(disk: ManagedDisk, manifest_path: str, desired: Iterable[WantedFile]) -> FilePlan:
    """Bring the files on the disk to the wanted state, and return what was done.

    Without wanted files, removes everything that it ever created, the manifest included. The folder of the manifest
    must exist. A file that cannot be written or removed is reported in `problems`; the others are not affected.
    MachineError if the manifest is damaged, OSError if it cannot be written: then no file has changed.
    """
    return _Application(disk, manifest_path).apply(list(desired))


class _Application:
    def __init__(self, disk: ManagedDisk, manifest_path: str) -> None:
        self.disk = disk
        self.path = manifest_path
        content = disk.read(manifest_path)
        self.stored = self.manifest = parse_manifest(content and content[0])

    def apply(self, desired: list[WantedFile]) -> FilePlan:
        problems: dict[str, MachineError] = {}
        self.disk.remove(self.path + TEMPORARY_SUFFIX)
        for path in self.manifest.files:
            with _reported(path, problems):
                self.disk.remove(path + TEMPORARY_SUFFIX)  # of an interrupted run
        paths = {file.path for file in desired} | set(self.manifest.files)
        current = {path: file for path in paths if (file := self.disk.current(path)) is not None}
        plan = plan_files(desired, self.manifest, current)
        self._announce(plan.write)
        written = {file.path for file in plan.write if self._write(file, problems)}
        removed = {*plan.forget, *(path for path in plan.remove if self._remove(path, problems))}
        files = {path: hashes for path, hashes in self.manifest.files.items() if path not in removed}
        settled = written | set(plan.equal)
        files |= {file.path: [sha256(file.text)] for file in desired if file.path in settled and file.path in files}
        self._store(Manifest(files, self._remaining_folders(files)))
        return FilePlan(
            tuple(file for file in plan.write if file.path in written),
            plan.equal,
            tuple(path for path in plan.remove if path in removed),
            plan.forget,
            {**plan.problems, **problems},
        )

    def _announce(self, write: Iterable[WantedFile]) -> None:
        """Store what is about to be created, so that no power failure loses track of it."""
        files = dict(self.manifest.files)
        folders = list(self.manifest.folders)
        for file in write:
            hashes = files.get(file.path, [])
            files[file.path] = [*hashes, *({sha256(file.text)} - set(hashes))]
            parts = parts_of(file.path)[:-1]
            for depth in range(1, len(parts) + 1):
                folder = "/".join(parts[:depth])
                if folder not in folders and not self.disk.is_folder(folder):
                    folders.append(folder)
        self._store(Manifest(files, folders))

    def _write(self, file: WantedFile, problems: dict[str, MachineError]) -> bool:
        with _reported(file.path, problems):
            parts = parts_of(file.path)
            for depth in range(1, len(parts)):
                self.disk.make_folder("/".join(parts[:depth]))
            self._replace(file.path, file.text.encode(), file.mode)
        return file.path not in problems

    def _remove(self, path: str, problems: dict[str, MachineError]) -> bool:
        with _reported(path, problems):
            self.disk.remove(path)
        return path not in problems

    def _remaining_folders(self, files: Iterable[str]) -> list[str]:
        """Remove the created folders that no file needs; return the others. The user's files keep their folder."""
        remaining = []
        for folder in reversed(self.manifest.folders):
            try:
                if any(path.startswith(f"{folder}/") for path in files):
                    remaining.append(folder)
                else:
                    self.disk.remove_folder(folder)
            except OSError as error:
                if error.errno not in _NOT_OURS:
                    remaining.append(folder)
        return remaining[::-1]

    def _store(self, manifest: Manifest) -> None:
        """Store the manifest if it has changed; remove it if it is empty."""
        self.manifest = manifest
        if manifest == self.stored:
            return
        if manifest == Manifest():
            self.disk.remove(self.path)
        else:
            self._replace(self.path, manifest_text(manifest), 0o600)
        self.stored = manifest

    def _replace(self, path: str, content: bytes, mode: int) -> None:
        temporary = path + TEMPORARY_SUFFIX
        self.disk.remove(temporary)
        self.disk.write(temporary, content, mode)
        self.disk.rename(temporary, path.rpartition("/")[2])


@contextlib.contextmanager
def _reported(path: str, problems: dict[str, MachineError]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problems[path] = MachineError(
            f"/{path} cannot be changed: {error.strerror or error}",
            kind=ErrorKind.PRECONDITION,
            remedy="its folders must be real folders, not symbolic links, on a disk that can be written",
        )

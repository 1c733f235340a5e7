"""The disk of a program of strangers: a tmpfs, which exists only while the program runs.

Its size and its number of entries are limits of the kernel, which count everything that is held: also files that are
open and have no name, and folders of any depth or mode. It is gone with the namespace of the program, however much is
on it. What must survive is copied through descriptors, by the process around the program, which the program cannot
reach: checkpoints in the course of the training and when it is interrupted, the output when the program has ended well.
Blocking. Only the standard library and `support.foreign` are imported, because this runs at the start of a job.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from support.foreign import FOLDER, enter_folder, erase, flush_tree, folder_entries

MAX_DEPTH: Final = 100  # levels of folders that are copied
OVERHEAD: Final = 16  # entries of the disk that are its own
ENTRY: Final = 1024  # bytes of memory for an entry of the disk, besides its content
NEW: Final = ".copy"  # suffix of a folder until its copy is complete
_PIECE: Final = 1024 * 1024
_EXCHANGE: Final = 2  # RENAME_EXCHANGE
_HERE: Final = -100  # AT_FDCWD
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk of one job, seen by the process around the program."""

    at: Path  # where it is mounted
    size: int  # bytes
    most: int  # entries
    output: Path
    checkpoints: Path
    temporary: Path

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Disk:
        """Return the disk of a plan."""
        paths = {name: Path(plan[name]) for name in ("at", "output", "checkpoints", "temporary")}
        return cls(size=plan["size"], most=plan["entries"], **paths)

    @property
    def options(self) -> str:
        """The options with which it is mounted."""
        return f"size={self.size},nr_inodes={self.most + OVERHEAD},mode=755"

    def place(self, path: Path) -> Path:
        """Return the folder on the disk that the program sees at a path."""
        return self.at / path.name

    def fill(self) -> None:
        """Make the folders, with the checkpoints of an earlier start. OSError if these cannot be copied."""
        for path in (self.output, self.checkpoints, self.temporary):
            self.place(path).mkdir(mode=0o700)
        if self.checkpoints.is_dir():
            copy(self.checkpoints, self.place(self.checkpoints), self.size, self.most)

    def save(self, path: Path) -> None:
        """Copy a folder of the disk to where it survives, in place of the one there. OSError if not possible."""
        new = path.with_name(f".{path.name}{NEW}")
        erase(new)
        new.mkdir(mode=0o700)
        copy(self.place(path), new, self.size, self.most)
        flush_tree(new)
        _replace(new, path)

    def save_regularly(self, seconds: float) -> NoReturn:
        """Copy the checkpoints again and again, if they have changed, and not while they change: until killed."""
        saved: object = facts(self.checkpoints)
        new = self.checkpoints.with_name(f".{self.checkpoints.name}{NEW}")
        while True:
            time.sleep(seconds)  # no event says that a program has completed its checkpoint
            try:
                before = facts(self.place(self.checkpoints))
                if before == saved:
                    continue
                erase(new)
                new.mkdir(mode=0o700)
                copy(self.place(self.checkpoints), new, self.size, self.most)
                if facts(self.place(self.checkpoints)) == before:
                    flush_tree(new)
                    _replace(new, self.checkpoints)
                    saved = before
            except OSError:
                continue  # it changes; the end of the program says so if it cannot be copied at all


def start_saving(disk: Disk, seconds: float) -> int:
    """Start the process that copies checkpoints; return its id. It ends with this process."""
    parent = os.getpid()
    saver = os.fork()
    if saver:
        return saver
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() == parent:
            os.nice(10)
            null = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):  # whoever reads the output waits until nobody can write it
                os.dup2(null, descriptor)
            disk.save_regularly(seconds)
    finally:
        os._exit(1)


def used(process: int, at: Path) -> int:
    """Return the bytes of memory of the disk at a path that `process` sees; 0 if it has none (any more)."""
    try:
        seen = Path(f"/proc/{process}/root{at}")
        if seen.stat().st_dev == at.stat().st_dev:
            return 0
        state = os.statvfs(seen)
    except OSError:
        return 0
    return (state.f_blocks - state.f_bfree) * state.f_frsize + (state.f_files - state.f_ffree) * ENTRY


def facts(folder: Path) -> dict[tuple[int, int], tuple[int, int, int, str]]:
    """Return what changes when anything in a folder changes, by device and number. OSError while it changes."""
    result = {}
    for entry in folder_entries(folder):
        status = os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
        result[status.st_dev, status.st_ino] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, entry.name)
    return result


def copy(source: Path, target: Path, size: int, most: int) -> None:
    """Copy what a program wrote into an empty folder of this user, through descriptors. Links stay links.

    OSError with the reason if it has more than `size` bytes or `most` entries, or more than MAX_DEPTH levels.
    What is not a file, folder or link becomes a pipe: whoever reads the copy refuses it, as it would the original.
    """
    folders = [os.open(path, FOLDER) for path in (source, target)]
    try:
        _Copy(size, most).folder(folders[0], folders[1], 0)
    finally:
        for folder in folders:
            os.close(folder)


class _Copy:
    def __init__(self, size: int, most: int) -> None:
        self._size, self._most = size, most
        self._bytes = self._entries = 0

    def folder(self, source: int, target: int, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise OSError(0, f"its folders are nested more than {MAX_DEPTH} levels deep")
        with os.scandir(source) as listed:
            for entry in listed:
                self._entries += 1
                if self._entries > self._most:
                    raise OSError(0, f"it has more than {self._most} entries")
                self._entry(entry.name, source, target, depth)

    def _entry(self, name: str, source: int, target: int, depth: int) -> None:
        mode = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            os.mkdir(name, 0o700, dir_fd=target)
            inner = enter_folder(name, source)
            try:
                copied = os.open(name, FOLDER, dir_fd=target)
                try:
                    self.folder(inner, copied, depth + 1)
                finally:
                    os.close(copied)
            finally:
                os.close(inner)
        elif stat.S_ISREG(mode):
            self._file(name, source, target)
        elif stat.S_ISLNK(mode):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        else:
            os.mkfifo(name, 0o600, dir_fd=target)

    def _file(self, name: str, source: int, target: int) -> None:
        file = os.open(name, _FILE, dir_fd=source)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(0, "it changes while it is copied")
            copied = os.open(name, _NEW_FILE, 0o600, dir_fd=target)
            try:
                at = 0
                while count := os.sendfile(copied, file, at, _PIECE):
                    at += count
                    self._bytes += count
                    if self._bytes > self._size:
                        raise OSError(0, f"its files are larger than {self._size // 1024**2} MiB")
                os.utime(copied, ns=(status.st_atime_ns, status.st_mtime_ns))
            finally:
                os.close(copied)
        finally:
            os.close(file)


def _replace(new: Path, path: Path) -> None:
    """Put a folder in the place of another one, which is removed. At each moment, one of them is there, complete."""
    path.mkdir(mode=0o700, exist_ok=True)
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    words = _HERE, os.fsencode(new), _HERE, os.fsencode(path), _EXCHANGE
    if exchange is None or exchange(*words):  # a file system without this call: for a moment, nothing is there
        old = path.with_name(f".{path.name}.old")
        erase(old)
        path.rename(old)
        new.rename(path)
        erase(old)
        return
    erase(new)

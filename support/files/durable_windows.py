"""What differs on Windows for files that survive a power cut."""

from __future__ import annotations

import errno
import msvcrt
import os
import sys
import time
from pathlib import Path
from typing import Final

assert sys.platform == "win32"

from support.windows import OPEN_EXISTING, READ, WRITE, open_handle

_IN_USE: Final = frozenset({5, 32})  # ERROR_ACCESS_DENIED and ERROR_SHARING_VIOLATION
PATIENCE: Final = 2.0  # seconds to wait for the readers of a file that is replaced
_PAUSE: Final = 0.01

# From winnt.h, fileapi.h and winerror.h
_CREATE_NEW: Final = 1
_CREATE_ALWAYS: Final = 2
_OPEN_ALWAYS: Final = 4
_NORMAL: Final = 0x80

_LINK: Final = b"link to "
_LINK_BYTES: Final = 4096  # of the content of a link


def open_file(path: Path, flags: int, mode: int = 0o777) -> int:
    """Open a file as os.open does, always binary, and without `mode`; others may rename and delete the open file."""
    way = flags & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
    access = READ if way == os.O_RDONLY else WRITE if way == os.O_WRONLY else READ | WRITE
    if flags & os.O_CREAT:
        creation = _CREATE_NEW if flags & os.O_EXCL else _CREATE_ALWAYS if flags & os.O_TRUNC else _OPEN_ALWAYS
    else:
        creation = OPEN_EXISTING
    handle = open_handle(os.path.abspath(path), access, creation, _NORMAL).value
    assert handle is not None
    return msvcrt.open_osfhandle(handle, (flags & (os.O_APPEND | os.O_RDONLY)) | os.O_BINARY | os.O_NOINHERIT)


def move_over(source: Path, target: Path) -> None:
    """Replace a file. Waits up to PATIENCE for programs that have opened it; PermissionError after that."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            os.replace(source, target)
        except PermissionError as error:
            if error.winerror not in _IN_USE or time.monotonic() > end:
                raise
            time.sleep(_PAUSE)  # there is no event for the end of another program's access
        else:
            return


def make_link(link: Path, target: str) -> None:
    """Create a file that contains a target, and write it to the disk. FileExistsError if it exists."""
    with open(link, "xb") as file:
        file.write(_LINK + target.encode())
        file.flush()
        os.fsync(file.fileno())


def read_link(link: Path) -> str:
    """Return the target of a link that `replace_link` made. FileNotFoundError; OSError if it is another file."""
    with open(open_file(link, os.O_RDONLY), "rb") as file:
        content = file.read(_LINK_BYTES)
    if not content.startswith(_LINK):
        raise OSError(errno.EINVAL, "not a link", str(link))
    return content.removeprefix(_LINK).decode("utf-8", "replace")


def is_link(path: Path) -> bool:
    """Return whether a path is a link that `replace_link` may have made."""
    try:
        return path.is_symlink() or bool(read_link(path))
    except OSError:
        return False


def set_mode(descriptor: int, mode: int) -> None:
    """Do nothing: the permissions of a new file are those of its folder."""


def sync_data(descriptor: int) -> None:
    """Write the content of a file that is open for writing to the disk."""
    os.fsync(descriptor)


def sync_file(path: Path) -> None:
    """Write the content of a file to the disk. Raises OSError."""
    descriptor = open_file(path, os.O_RDWR)  # FlushFileBuffers refuses descriptors that cannot write
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Do nothing but raise FileNotFoundError if it does not exist: the journal of NTFS keeps the order of entries."""
    os.stat(folder)


def read_at(descriptor: int, count: int, position: int) -> bytes:
    """Return up to `count` bytes from a position; the descriptor must not be used by several threads at once."""
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, position, os.SEEK_SET)
    try:
        return os.read(descriptor, count)
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)


def write_at(descriptor: int, data: bytes, position: int) -> int:
    """Write `data` at a position and return how much was written; the position of the descriptor stays."""
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, position, os.SEEK_SET)
    try:
        return os.write(descriptor, data)
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)

"""The folder of leases. Programs other than the agent write into it, so nothing in it is trusted. All functions block.

Only root can write into the folder, unless the group GROUP exists: then its members can, too. A lease delays security
updates, so who can take one is a decision of the device's administrator, and not everyone's, as in /tmp. The folder is
sticky, so that a member cannot remove the lease of another. Everyone can read it.
"""

from __future__ import annotations

import errno
import grp
import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from agent.leases.lease import FORMAT, MAX_BYTES, LeaseContent, encode, is_ignored, is_name, parse
from schema import ErrorKind, MachineError
from support.files import replace_file

GROUP: Final = "machine-lease"
"""Group of the users that may take leases."""
MAX_FILES: Final = 200
"""Files that are read; further ones are ignored and reported."""
_LISTED: Final = 0o755
_SHARED: Final = 0o1775
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LeaseFile(NamedTuple):
    """A file in the folder: its lease, or what is wrong with it."""

    name: str
    identity: tuple[int, ...]  # changes whenever the file is written or replaced
    changed: float  # seconds since 1970; programs cannot set this
    content: LeaseContent | None
    problem: str = ""
    remedy: str = ""


class LeaseFiles(NamedTuple):
    """The files, and whether there are more than MAX_FILES."""

    files: tuple[LeaseFile, ...]
    too_many: bool = False


def prepare(folder: Path, group: str = GROUP) -> None:
    """Create the folder, or repair its owner and mode. Raises OSError."""
    folder.mkdir(mode=_LISTED, parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        shared = _group(group) if os.geteuid() == 0 else None
        os.fchown(descriptor, os.geteuid(), os.getegid() if shared is None else shared)
        os.fchmod(descriptor, _LISTED if shared is None else _SHARED)
    finally:
        os.close(descriptor)


def _group(name: str) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def read(folder: Path) -> LeaseFiles:
    """Return the files in the folder by name. Raises OSError if it cannot be read."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with os.scandir(descriptor) as entries:
            names = [entry.name for entry in islice(entries, MAX_FILES + 1)]
        files = [file for name in sorted(names[:MAX_FILES]) for file in _read(name, descriptor)]
        return LeaseFiles(tuple(files), len(names) > MAX_FILES)
    finally:
        os.close(descriptor)


def _read(name: str, folder: int) -> Iterator[LeaseFile]:
    """Yield the file; nothing if it is not complete yet, or was deleted."""
    if is_ignored(name):
        return
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else str(error.strerror)
        yield LeaseFile(name, (), 0.0, None, f"is not a lease: {reason}", "delete it, and write a file")
        return
    try:
        status = os.fstat(descriptor)
        identity = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        yield _judge(LeaseFile(name, identity, status.st_ctime, None), status.st_mode, descriptor)
    finally:
        os.close(descriptor)


def _judge(file: LeaseFile, mode: int, descriptor: int) -> LeaseFile:
    if not is_name(file.name):
        remedy = "use at most 64 letters, digits, `.`, `_` and `-`"
        return file._replace(problem="is not a lease: its name is not valid", remedy=remedy)
    if not stat.S_ISREG(mode):
        return file._replace(problem="is not a lease: it is not a file", remedy="delete it, and write a file")
    try:
        return file._replace(content=parse(os.read(descriptor, MAX_BYTES + 1)))
    except ValueError as error:
        return file._replace(problem=f"is not a lease: {error}", remedy=FORMAT)
    except OSError as error:
        return file._replace(problem=f"cannot be read: {error.strerror}", remedy="delete it")


def write(folder: Path, name: str, content: LeaseContent) -> None:
    """Write a lease, or renew it. Raises OSError."""
    replace_file(folder / name, encode(content))


def remove(folder: Path, name: str) -> None:
    """Delete a lease. NOT_FOUND if there is none; raises OSError if it cannot be deleted."""
    try:
        (folder / name).unlink()
    except FileNotFoundError:
        raise MachineError(
            f"there is no lease {name!r}", kind=ErrorKind.NOT_FOUND, remedy="look at `machine agent lease list`"
        ) from None

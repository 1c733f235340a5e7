"""Preparation of the agent's folders, and the lock that keeps a second agent from running. All functions block."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agent.layout import Layout
from schema import ErrorKind, MachineError
from support.files import try_lock_file

PUBLIC: Final = 0o755
PRIVATE: Final = 0o700


def prepare(layout: Layout) -> tuple[str, ...]:
    """Create the folders that are missing and repair owner and permissions; return what cannot be repaired.

    A wrong owner or mode never keeps the agent from starting, because the device could then not be repaired remotely.
    Raises MachineError if a folder cannot be created, or something else has its name.
    """
    problems: list[str] = []
    private = {layout.state, layout.downloads, layout.queue, layout.trust, layout.home}
    for folder in layout.folders:
        mode = PRIVATE if folder in private else PUBLIC
        try:
            folder.mkdir(mode=mode, parents=True, exist_ok=True)
        except FileExistsError:
            raise MachineError(
                f"{folder} is not a folder",
                kind=ErrorKind.PRECONDITION,
                remedy="move it away; the agent needs its name",
            ) from None
        except OSError as error:
            raise MachineError(
                f"the folder {folder} cannot be created: {error.strerror}",
                kind=ErrorKind.PRECONDITION,
                remedy="run machine-agent as root, or choose another folder with --root",
            ) from None
        problems += _repaired(folder, mode)
    return tuple(problems)


def _repaired(folder: Path, mode: int) -> Iterator[str]:
    """Repair owner and mode of a folder; yield what fails."""
    status = folder.stat()
    if status.st_uid != os.geteuid():
        try:
            os.chown(folder, os.geteuid(), os.getegid())
        except OSError as error:
            yield f"{folder} belongs to user {status.st_uid}, and changing that fails: {error.strerror}"
    if stat.S_IMODE(status.st_mode) != mode:
        try:
            folder.chmod(mode)
        except OSError as error:
            yield f"{folder} has mode {stat.S_IMODE(status.st_mode):o}, and changing that fails: {error.strerror}"


@contextmanager
def locked(
    path: Path,
    holds: str = "another machine-agent runs already",
    remedy: str = "stop it with `systemctl stop machine-agent`, or choose another folder with --root",
) -> Iterator[None]:
    """Hold a lock while the context is open. PRECONDITION with `holds` and `remedy` if another process holds it.

    The kernel releases the lock when its process ends, so it is never stale.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if not try_lock_file(descriptor):
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            raise MachineError(
                f"{holds} (process {holder or 'unknown'}; lock {path})", kind=ErrorKind.PRECONDITION, remedy=remedy
            )
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)

"""Lookup of the process that listens on a TCP port, as far as this user has access."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

LISTENING: Final = "0A"  # socket state in /proc/net/tcp
ROWS: Final = 500  # lines of /proc/net/tcp read between two checkpoints


async def holder(port: int, proc: Path = Path("/proc")) -> str:
    """Return `name (process 123)` of a process that listens on `port`; "" if this user can see none.

    Reads /proc with checkpoints in between; never raises OSError.
    """
    inodes = set()
    for table in ("tcp", "tcp6"):
        for number, row in enumerate(_rows(proc / "net" / table)):
            fields = row.split()
            if len(fields) > 9 and fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
            if number % ROWS == 0:
                await trio.lowlevel.checkpoint()
    for process in _names(proc):
        if not inodes:
            break
        await trio.lowlevel.checkpoint()
        if process.isdigit() and any(
            _link(proc / process / "fd" / fd) in inodes for fd in _names(proc / process / "fd")
        ):
            return f"{next(_rows(proc / process / 'comm', skip=0), 'a program')} (process {process})"
    return ""


def _rows(path: Path, *, skip: int = 1) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file):
                if number >= skip:
                    yield line.strip()
    except OSError:
        return


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""

"""Facts about a process from /proc. All functions block briefly."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

IDENTITY: Final = "MACHINE_ENVIRONMENT"
"""The variable that identifies the environment in which machine-server was started."""

_LISTEN: Final = "0A"  # TCP_LISTEN of linux/tcp_states.h
_SUSPENDED: Final = ("T", "t")  # by a signal, by a debugger


def identified(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the variable IDENTITY, a digest of the rest."""
    digest = hashlib.sha256()
    for name, value in sorted(environment.items()):
        if name != IDENTITY:
            digest.update(f"{name}={value}\0".encode())
    return {**environment, IDENTITY: digest.hexdigest()[:16]}


def variables(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty if it cannot be read."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition(b"=") for entry in data.split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, equals, value in pairs if equals}


def started_with(name: str, value: str) -> tuple[int, ...]:
    """Return the processes with this environment variable whose parents do not have it. Blocks some milliseconds.

    Processes of other users are not seen, except by root.
    """
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and variables(int(entry.name)).get(name) == value:
            with suppress(OSError, IndexError, ValueError):  # it has ended
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return tuple(sorted(pid for pid, parent in parents.items() if parent not in parents and pid != os.getpid()))


def is_suspended(pid: int) -> bool:
    """Return whether a process was suspended by a person: with SIGSTOP, or with a debugger."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] in _SUSPENDED


def listening(pid: int) -> list[str]:
    """Return the TCP addresses `host:port` at which a process listens; empty if that cannot be read."""
    sockets = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):  # closed in the meantime
                sockets.add(os.readlink(entry.path))
        tables = [Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    except OSError:
        return []
    addresses = []
    for line in (line for table in tables for line in table):
        fields = line.split()
        if fields[3] == _LISTEN and f"socket:[{fields[9]}]" in sockets:
            host, _, port = fields[1].partition(":")
            words = [int(host[start : start + 8], 16) for start in range(0, len(host), 8)]
            packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)  # proc(5): in the order of the host
            addresses.append(f"[{ipaddress.ip_address(packed)}]:{int(port, 16)}")
    return addresses


def oom_kills() -> int:
    """Return how many processes of this control group were killed because memory ran out; 0 if that is not visible."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
        path = next(line[3:] for line in groups if line.startswith("0::"))
        events = Path(f"/sys/fs/cgroup{path}/memory.events").read_text().splitlines()
        return next(int(line.split()[1]) for line in events if line.startswith("oom_kill "))
    except (OSError, StopIteration, ValueError, IndexError):
        return 0

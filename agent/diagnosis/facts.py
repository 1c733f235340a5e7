"""Facts about the device that the checks judge. The functions block for a short time, and never raise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

COMMAND_LIMIT: Final = 10.0  # seconds
_MAX_FILE: Final = 4096


class UnitFacts(NamedTuple):
    """State of a systemd unit."""

    load: str = ""  # loaded, not-found, masked
    active: str = ""  # active, inactive, failed, activating
    enabled: str = ""  # enabled, disabled, static
    restarts: int = 0


class Space(NamedTuple):
    """Free space of a file system."""

    free: int  # bytes for this user
    files: int  # more files that it can hold; -1 if it has no limit


class RadioFacts(NamedTuple):
    """A wireless interface."""

    name: str
    blocked: str  # "" | "by software" | "by a switch"


def runs(file: Path) -> bool:
    """Return whether the process that has written its addresses to this file still runs."""
    try:
        pid = json.loads(file.read_bytes()[:_MAX_FILE])["pid"]
        if pid < 1:  # a process group
            return False
        os.kill(pid, 0)
    except PermissionError:  # of another user
        return True
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return False
    return True


def output(command: Sequence[str]) -> str | None:
    """Return what a command prints; None if it is not installed, fails or takes too long."""
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, errors="replace", timeout=COMMAND_LIMIT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def has_systemd(root: Path = Path("/")) -> bool:
    """Return whether systemd is the init process: sd_booted(3)."""
    return (root / "run/systemd/system").is_dir() and shutil.which("systemctl") is not None


def unit(name: str) -> UnitFacts | None:
    """Return the state of a unit; None if systemd does not answer."""
    said = output(["systemctl", "show", name, "--property=LoadState,ActiveState,UnitFileState,NRestarts"])
    if said is None:
        return None
    values = dict(line.partition("=")[::2] for line in said.splitlines())
    restarts = values.get("NRestarts", "0")
    return UnitFacts(
        values.get("LoadState", ""),
        values.get("ActiveState", ""),
        values.get("UnitFileState", ""),
        int(restarts) if restarts.isdecimal() else 0,
    )


def space(path: Path) -> Space | None:
    """Return the free space of the file system that holds `path`, or its nearest parent that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        system = os.statvfs(path)
    except OSError:
        return None
    return Space(system.f_bavail * system.f_frsize, system.f_favail if system.f_files else -1)


def clock_is_synchronized() -> bool | None:
    """Return whether a time service has set the clock; None if that is not known."""
    said = output(["timedatectl", "show", "--property=NTPSynchronized", "--value"])
    return None if said is None else said.strip() == "yes"


def control_groups(root: Path = Path("/")) -> frozenset[str] | None:
    """Return the controllers of control groups version 2; None if this version is not mounted."""
    try:
        return frozenset((root / "sys/fs/cgroup/cgroup.controllers").read_text().split())
    except OSError:
        return None


def radios(root: Path = Path("/")) -> tuple[RadioFacts, ...]:
    """Return the wireless interfaces and whether they are blocked: rfkill in the kernel's documentation."""
    result = []
    for interface in sorted((root / "sys/class/net").glob("*/phy80211")):
        blocked = ""
        for switch in interface.glob("rfkill*"):
            values: Mapping[str, str] = {name: _text(switch / name) for name in ("hard", "soft")}
            blocked = "by a switch" if values["hard"] == "1" else "by software" if values["soft"] == "1" else blocked
        result.append(RadioFacts(interface.parent.name, blocked))
    return tuple(result)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""

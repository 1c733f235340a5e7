"""Control groups (version 2) for programs: limits on everything that a job runs together, and what it has used.

The groups of jobs are below the group of this process, which must be this process's own: that of a service with
`Delegate=yes`, or of a container with its own control groups. A group with limits for others must not contain processes
(cgroups(7), "no internal processes"), so this process moves to another group below it. Everything here blocks
briefly.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from training.engine.port import Bounds

MOUNT: Final = Path("/sys/fs/cgroup")
OWN: Final = Path("/proc/self/cgroup")
LEAF: Final = "machine-cloud"  # group of this process
PREFIX: Final = "training-"  # of the groups of jobs
CONTROLLERS: Final = ("memory", "pids", "cpu")
WEIGHT: Final = 20  # share of the processor; 100 is that of other groups
AROUND: Final = 8  # processes around a program that its limit does not count


@dataclass(frozen=True, slots=True)
class Used:
    """What a job has used: seconds of processor time, bytes of memory at most, and limits that it ran into."""

    cpu: float = 0.0
    memory: int = 0
    killed: int = 0  # processes killed because the job used up its memory
    refused: int = 0  # processes that were not started


@dataclass(frozen=True, slots=True)
class Groups:
    """Control groups of jobs below `base`."""

    base: Path

    def make(self, job: str, bounds: Bounds) -> Path:
        """Make the group of a job, and return it. OSError if that is not possible."""
        self.sweep()
        group = self.base / f"{PREFIX}{job}"
        while group.exists():  # an earlier start of the job has left it; its counters would be those of that start
            group = group.with_name(f"{group.name}.")
        group.mkdir()
        for name, value in _settings(bounds).items():
            try:
                _write(group / name, value)
            except FileNotFoundError:
                if name not in _OPTIONAL:
                    raise
        return group

    def remove(self, group: Path) -> None:
        """Kill what still runs in the group of a job, and remove the group, now or in the next `sweep`."""
        try:
            _write(group / "cgroup.kill", "1")
        except OSError:
            pass  # a kernel before 5.14; the process around the program has killed everything
        _remove(group)

    def sweep(self) -> None:
        """Remove groups of jobs in which nothing runs any more: those of a cloud that was killed, for example."""
        for group in self.base.glob(f"{PREFIX}*"):
            _remove(group)


_OPTIONAL: Final = ("memory.swap.max", "memory.oom.group", "cpu.weight")
"""Files that some kernels do not have: swap, and the two newest."""


def _settings(bounds: Bounds) -> Mapping[str, str]:
    return {
        "memory.max": str(bounds.memory),
        "memory.swap.max": "0",
        "memory.oom.group": "1",  # without it, a random process of the job would die, and the others go on
        "pids.max": str(bounds.processes + AROUND),
        "cpu.weight": str(WEIGHT),
    }


def _write(path: Path, text: str) -> None:
    """Write to a file that must exist: to create one is not permitted, which would hide that it is missing."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _remove(group: Path) -> None:
    try:
        group.rmdir()
    except OSError:
        pass  # something runs in it, or another process has removed it


def open_groups(mount: Path = MOUNT, own: Path = OWN) -> Groups:
    """Prepare the group of this process for groups of jobs. OSError with the reason if that is not possible."""
    group = _own_group(mount, own)
    base = group.parent if group.name == LEAF else group
    missing = [name for name in CONTROLLERS if name not in _words(base / "cgroup.controllers")]
    if missing:
        raise OSError(errno.ENOTSUP, f"the control group {base} has no controller for {', '.join(missing)}")
    _leave(base)
    _write(base / "cgroup.subtree_control", " ".join(f"+{name}" for name in CONTROLLERS))
    groups = Groups(base)
    groups.sweep()
    return groups


def _own_group(mount: Path, own: Path) -> Path:
    for line in own.read_text().splitlines():
        if line.startswith("0::/") and (mount / "cgroup.controllers").exists():
            return mount / line.removeprefix("0::/")
    raise OSError(errno.ENOTSUP, "this computer does not use control groups of version 2")


def _leave(base: Path) -> None:
    """Move this process from `base` to a group below it. OSError if other processes are in `base`, too."""
    inside = _words(base / "cgroup.procs")
    others = [process for process in inside if process != str(os.getpid()) and not _is_child(process)]
    if others:
        raise OSError(errno.EBUSY, f"the control group {base} is not only that of this program: {len(others)} others")
    leaf = base / LEAF
    leaf.mkdir(exist_ok=True)
    for process in inside:
        _write(leaf / "cgroup.procs", process)


def _is_child(process: str) -> bool:
    """Return whether a process was started by this one, or has just ended. Those of other namespaces have the id 0."""
    if process == "0":
        return False
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True
    return fields[1] == str(os.getpid())


def used(group: Path) -> Used:
    """Return what the job of a group has used so far; zeros for what the kernel does not say."""
    memory, processes, cpu = (_counts(group / name) for name in ("memory.events", "pids.events", "cpu.stat"))
    return Used(
        cpu=cpu.get("usage_usec", 0) / 1e6,
        memory=_number(group / "memory.peak"),
        killed=memory.get("oom_kill", 0),
        refused=processes.get("max", 0),
    )


def _counts(path: Path) -> dict[str, int]:
    """Return the lines `name number` of a file."""
    words = _words(path)
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=False) if value.isdigit()}


def _number(path: Path) -> int:
    words = _words(path)
    return int(words[0]) if words and words[0].isdigit() else 0


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []

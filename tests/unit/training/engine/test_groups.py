"""Control groups, with folders in place of those of the kernel; tests/hil/test_training_groups.py has the real ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from training.engine.groups import Groups, Used, open_groups, used
from training.engine.port import MIB, Bounds

FILES = ("cgroup.procs", "memory.max", "memory.oom.group", "pids.max", "cpu.weight", "cgroup.kill")


class Mount:
    """A folder like a mounted hierarchy. The kernel makes the files of new groups; here `make` does."""

    def __init__(self, folder: Path, controllers: str = "cpu io memory pids") -> None:
        self.folder = folder / "mount"
        self.base = self.folder / "system.slice" / "cloud.service"
        self.own = folder / "own"
        self.own.write_text("0::/system.slice/cloud.service\n")
        for group in (self.folder, self.base, self.base / "machine-cloud"):
            group.mkdir(parents=True)
            (group / "cgroup.controllers").write_text(controllers)
            (group / "cgroup.procs").write_text("")
            (group / "cgroup.subtree_control").write_text("")
        (self.base / "cgroup.procs").write_text(f"{os.getpid()}\n")

    def make(self, name: str) -> Path:
        group = self.base / name
        group.mkdir()
        for file in FILES:
            (group / file).write_text("")
        return group

    def make_new(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give new groups their files, as the kernel does."""
        mkdir = Path.mkdir

        def make(path: Path, *args: Any, **options: Any) -> None:
            mkdir(path, *args, **options)
            for file in FILES:
                (path / file).write_text("")

        monkeypatch.setattr(Path, "mkdir", make)

    def open(self) -> Groups:
        return open_groups(self.folder, self.own)


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path)


def test_this_process_moves_below_its_group(mount: Mount) -> None:
    assert mount.open().base == mount.base
    assert (mount.base / "machine-cloud" / "cgroup.procs").read_text() == str(os.getpid())
    assert (mount.base / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"


def test_a_restarted_cloud_uses_the_same_groups(mount: Mount) -> None:
    mount.own.write_text("0::/system.slice/cloud.service/machine-cloud\n")
    (mount.base / "cgroup.procs").write_text("")
    assert mount.open().base == mount.base


@pytest.mark.parametrize("other", ["1", "0"])
def test_a_group_with_other_processes_is_left_alone(mount: Mount, other: str) -> None:
    (mount.base / "cgroup.procs").write_text(f"{other}\n{os.getpid()}\n")
    with pytest.raises(OSError, match="is not only that of this program: 1 others"):
        mount.open()
    assert (mount.base / "machine-cloud" / "cgroup.procs").read_text() == ""


def test_missing_controllers_are_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="has no controller for pids, cpu"):
        Mount(tmp_path, "memory").open()


@pytest.mark.parametrize("text", ["", "5:memory:/x\n", "0::"])
def test_without_control_groups_of_version_2(mount: Mount, text: str) -> None:
    mount.own.write_text(text)
    with pytest.raises(OSError, match="version 2"):
        mount.open()


def test_the_limits_of_a_job(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    mount.make_new(monkeypatch)
    group = Groups(mount.base).make("j1", Bounds(memory=100 * MIB, processes=10))
    assert group.name == "training-j1"
    values = {name: (group / name).read_text() for name in FILES[1:5]}
    assert values == {
        "memory.max": str(100 * MIB),
        "memory.oom.group": "1",
        "pids.max": "18",
        "cpu.weight": "20",
    }


def test_a_group_that_was_left_is_not_used_again(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may still have processes, and its counters are those of the earlier start."""
    mount.make("training-j1")
    mount.make_new(monkeypatch)
    assert Groups(mount.base).make("j1", Bounds()).name == "training-j1."


def test_a_limit_that_cannot_be_set_is_an_error(mount: Mount) -> None:
    with pytest.raises(FileNotFoundError):
        Groups(mount.base).make("j1", Bounds())


def test_usage_is_read_from_the_files_of_a_group(mount: Mount) -> None:
    group = mount.make("training-j1")
    assert used(group) == Used()
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 3\n")
    (group / "pids.events").write_text("max 5\n")
    (group / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1000000\n")
    (group / "memory.peak").write_text("1048576\n")
    assert used(group) == Used(1.5, 1048576, 3, 5)


def test_empty_groups_of_earlier_jobs_are_removed(mount: Mount) -> None:
    (mount.base / "training-old").mkdir()
    running = mount.make("training-running")  # not empty, like a group with processes
    mount.open()
    assert not (mount.base / "training-old").exists()
    assert running.exists()
    assert (mount.base / "machine-cloud").exists()

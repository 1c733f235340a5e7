"""Copies from the disk of a hostile program: bounded, without following anything, and complete or not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from support.foreign.removal import remove
from tests.unit.support.hostile import dig
from training.engine.disk import Disk, copy, facts, used
from training.engine.port import MIB, Bounds


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "a" / "closed").mkdir(parents=True)
    (folder / "a" / "closed" / "file").write_bytes(b"x" * 5000)
    (folder / "a" / "closed").chmod(0)
    (folder / "link").symlink_to("/etc")
    (folder / "file").write_text("weights")
    (folder / "name").hardlink_to(folder / "file")
    os.mkfifo(folder / "pipe")
    os.mknod(folder / "socket", 0o140644)
    return folder


def test_everything_is_copied(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    copy(source, target, 10_000, 100)
    assert (target / "a" / "closed" / "file").read_bytes() == b"x" * 5000
    assert os.readlink(target / "link") == "/etc"
    assert (target / "name").read_text() == "weights"
    assert (target / "file").stat().st_nlink == 1
    assert stat.S_ISFIFO((target / "pipe").lstat().st_mode)
    assert stat.S_ISFIFO((target / "socket").lstat().st_mode)
    assert (target / "file").stat().st_mtime_ns == (source / "file").stat().st_mtime_ns


@pytest.mark.parametrize(
    ("size", "most", "depth", "reason"),
    [
        (5000, 100, 0, "larger than 0 MiB"),  # 5014 bytes
        (10_000, 7, 0, "more than 7 entries"),
        (10_000, 10_000, 150, "more than 100 levels deep"),
        (10_000, 10_000, 3000, "more than 100 levels deep"),
    ],
)
def test_copies_are_bounded(source: Path, tmp_path: Path, size: int, most: int, depth: int, reason: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    if depth:
        dig(source / "deep", depth)
    with pytest.raises(OSError, match=reason):
        copy(source, target, size, most)
    assert remove(source).complete


def test_a_copy_replaces_the_one_before_only_when_it_is_complete(source: Path, tmp_path: Path) -> None:
    job = tmp_path / "job"
    for path in (job / "tmp" / "checkpoints", job / "checkpoints"):
        path.mkdir(parents=True)
    (job / "checkpoints" / "step").write_text("1")
    (job / "tmp" / "checkpoints" / "step").write_text("2")
    (job / ".checkpoints.copy").mkdir()  # of an earlier start, which was killed
    (job / ".checkpoints.copy" / "half").touch()
    disk = Disk(job / "tmp", 10_000, 1, job / "output", job / "checkpoints", job / "tmp")
    disk.save(job / "checkpoints")
    assert [path.read_text() for path in (job / "checkpoints").iterdir()] == ["2"]
    (job / "tmp" / "checkpoints" / "more").touch()
    with pytest.raises(OSError, match="more than 1 entries"):
        disk.save(job / "checkpoints")
    assert [path.read_text() for path in (job / "checkpoints").iterdir()] == ["2"]


def test_changes_are_seen(source: Path) -> None:
    before = facts(source)
    assert facts(source) == before
    (source / "a" / "closed" / "file").write_bytes(b"y" * 5000)
    assert facts(source) != before


def test_a_process_without_a_disk_uses_none(tmp_path: Path) -> None:
    assert used(os.getpid(), tmp_path) == 0
    assert used(2**30, tmp_path) == 0


def test_the_disk_leaves_half_of_the_memory() -> None:
    assert Bounds(memory=100 * MIB).own_disk == 50 * MIB
    assert Bounds(memory=100 * MIB, disk=MIB).own_disk == MIB
    assert Bounds(memory=2**60, disk=2**60).own_disk < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

"""What an earlier start of a job has left, however deep, does not stop the next one."""

from __future__ import annotations

import os
from pathlib import Path

from support.foreign.removal import remove
from support.foreign.walking_at import folder_entries
from tests.unit.support.hostile import dig
from training.engine import local
from training.engine.port import Order
from training.engine.ray_engine import _copy
from training.engine.sandbox import _own


def test_folders_of_an_earlier_start_are_replaced(tmp_path: Path) -> None:
    order = Order("job", tmp_path / "job", "module", ())
    order.folder.mkdir()
    local._prepare(order)
    assert os.listdir(order.output) == []
    for folder in (order.output, order.folder / "tmp"):
        folder.rmdir()
        dig(folder, 1900)
    (order.checkpoints / "kept").touch()
    local._prepare(order)
    assert os.listdir(order.output) == os.listdir(order.folder / "tmp") == []
    assert os.listdir(order.checkpoints) == ["kept"]
    assert sorted(os.listdir(order.folder)) == ["checkpoints", "output", "root", "tmp"]


def test_checkpoints_at_any_depth_get_their_owner(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    dig(folder, 1900)
    (folder / "link").symlink_to(tmp_path / "absent")
    _own(folder, os.geteuid())
    users = {os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False).st_uid for entry in folder_entries(folder)}
    assert users == {os.geteuid()}
    assert remove(folder).complete


def test_checkpoints_are_copied_without_links_and_devices(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    target.mkdir()
    (source / "a").mkdir(parents=True)
    (source / "a" / "file").write_text("weights")
    (source / "link").symlink_to("a")
    (source / "a" / "link").symlink_to("file")
    os.mkfifo(source / "pipe")
    _copy(source, target)
    assert [str(path.relative_to(target)) for path in sorted(target.rglob("*"))] == ["a", "a/file"]
    assert (target / "a" / "file").read_text() == "weights"

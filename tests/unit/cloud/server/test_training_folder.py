"""The folder of training jobs belongs to one cloud; a cloud that would remove the jobs of another does not start."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cloud.commands.options import Options
from cloud.domain.upkeep.identity import of
from cloud.server import training_folder
from cloud.server.memory import open_cloud
from cloud.server.training_folder import claim, folder_of, mark
from schema.errors import ErrorKind, MachineError

MARK = "machine-cloud.json"


def test_a_folder_belongs_to_the_first_cloud(tmp_path: Path) -> None:
    folder = tmp_path / "shared" / "machine-training"
    mark(folder, "a")
    (folder / "a-job").mkdir()
    mark(folder, "a")  # its next start, a replica, or a database that was restored or moved
    with pytest.raises(MachineError) as caught:
        mark(folder, "b")
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert f"{folder} belongs to the cloud a, and this is the cloud b: set --training-folder to" in str(caught.value)
    assert f"delete {folder}" in caught.value.remedy
    assert sorted(os.listdir(folder)) == ["a-job", MARK]


def test_of_two_clouds_that_start_at_once_one_gets_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = training_folder.write_stamp

    def write_later(folder: Path, content: bytes, *, replace: bool) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(training_folder, "write_stamp", write)
            mark(tmp_path, "a")  # between the look and the mark of the other
        return write(folder, content, replace=replace)

    monkeypatch.setattr(training_folder, "write_stamp", write_later)
    with pytest.raises(MachineError, match="belongs to the cloud a, and this is the cloud b"):
        mark(tmp_path, "b")
    mark(tmp_path, "a")


def test_a_folder_without_a_mark_is_used(tmp_path: Path) -> None:
    """It is of an earlier version, or of a cloud that was killed after it had made it."""
    (tmp_path / "job").mkdir()
    (tmp_path / f".{MARK}.part").write_text('{"cloud": "a", "cou')
    mark(tmp_path, "b")
    with pytest.raises(MachineError, match="belongs to the cloud b"):
        mark(tmp_path, "a")


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(MachineError, match=f"{tmp_path} cannot be used: No space left on device: check") as caught:
            mark(tmp_path, "a")
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert os.listdir(tmp_path) == []
    mark(tmp_path, "a")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="file/machine-training cannot be used: Not a directory"):
        mark(tmp_path / "file" / "machine-training", "a")


@pytest.mark.parametrize("content", ["", "{}", "null", '{"cloud": "a", "cou', '{"cloud": "", "count": 0}', "[" * 9000])
def test_a_damaged_mark_is_not_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / MARK).write_text(content)
    with pytest.raises(MachineError, match=f"{MARK} is not valid: .*: if no other cloud uses {tmp_path}, delete it"):
        mark(tmp_path, "a")
    assert (tmp_path / MARK).read_text() == content


def test_a_mark_that_a_program_has_replaced(tmp_path: Path) -> None:
    """Programs on Ray nodes run as the user who owns the folder. Nothing waits for a pipe or follows a link."""
    os.mkfifo(tmp_path / MARK)
    with pytest.raises(MachineError, match="is not valid"):
        mark(tmp_path, "a")
    (tmp_path / MARK).unlink()
    (tmp_path / "other").write_text('{"cloud": "a", "count": 0}')
    (tmp_path / MARK).symlink_to(tmp_path / "other")
    with pytest.raises(MachineError, match="cannot be used"):
        mark(tmp_path, "a")


async def test_the_id_is_that_of_the_database(tmp_path: Path) -> None:
    options = Options(data=tmp_path / "data", training_folder=tmp_path / "shared")
    async with open_cloud() as ours, open_cloud() as other:
        await claim(options, ours.cloud.store)
        await claim(options, ours.cloud.store)
        identity = await ours.cloud.store.read(of)
        assert identity is not None
        with pytest.raises(MachineError, match=f"{folder_of(options)} belongs to the cloud {identity.cloud}"):
            await claim(options, other.cloud.store)
        await claim(Options(data=tmp_path / "other"), other.cloud.store)

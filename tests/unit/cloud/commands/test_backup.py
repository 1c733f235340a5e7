"""Backups of a cloud whose files are in a bucket: they omit the files, and a restore never mixes folder and bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloud.blobs.s3_location import BucketLocation, parse_location
from cloud.commands.backup import backup, restore
from cloud.store.events import Events
from cloud.store.sqlite import SqliteStore
from schema.errors import ErrorKind, MachineError

BUCKET = parse_location("s3://my-bucket/cloud", environ={})


class Data:
    """The data folder of a cloud, and the path of its backup."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "cloud.db"
        self.files = folder / "files"
        self.archive = folder.parent / "backup.tar"

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def refused(self, files: Path | BucketLocation) -> MachineError:
        """Return the error of a restore, which must change nothing."""
        before = (self.names(), self.database.read_bytes())
        with pytest.raises(MachineError) as caught:
            restore(self.archive, self.database, files)
        assert caught.value.kind is ErrorKind.PRECONDITION
        assert (self.names(), self.database.read_bytes()) == before
        return caught.value


@pytest.fixture
async def data(tmp_path: Path) -> Data:
    created = Data(tmp_path / "data")
    created.folder.mkdir()
    async with SqliteStore(created.database, Events()).opened():
        pass
    (created.files / "ab").mkdir(parents=True)
    (created.files / "ab" / "ab1").write_bytes(b"content")
    return created


async def test_files_in_a_bucket_stay_there(data: Data) -> None:
    size, count = backup(data.database, BUCKET, data.archive)
    assert (size > 0, count) == (True, 0)
    error = data.refused(data.files)
    assert "s3://my-bucket/cloud" in error.message
    assert "files copy" in error.remedy
    previous = restore(data.archive, data.database, BUCKET)
    assert [path.name for path in previous] == ["cloud.db.before-restore-1"]
    assert (data.files / "ab" / "ab1").read_bytes() == b"content"  # the restore leaves the unrelated folder alone
    assert not [name for name in data.names() if name.endswith(".restoring")]


async def test_files_of_a_folder_are_kept_when_moving_to_a_bucket(data: Data) -> None:
    assert backup(data.database, data.files, data.archive)[1] == 1
    assert "files copy" in data.refused(BUCKET).remedy
    assert len(restore(data.archive, data.database, data.files)) == 2
    assert (data.files / "ab" / "ab1").read_bytes() == b"content"


async def test_a_backup_without_any_files_fits_both(data: Data) -> None:
    (data.files / "ab" / "ab1").unlink()
    backup(data.database, data.files, data.archive)
    restore(data.archive, data.database, BUCKET)
    restore(data.archive, data.database, data.files)

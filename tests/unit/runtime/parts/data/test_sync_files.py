"""Files of additional folders are uploaded to the cloud once they have not changed for a while."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio
from grpclib.const import Status
from trio.testing import MockClock

from runtime.parts.data.sync import delivery
from runtime.parts.data.sync.delivery import labels_of
from runtime.parts.data.sync.sync import SyncSettings
from runtime.parts.data.sync.upload import PIECE
from runtime.parts.data.sync.waiting import waiting
from tests.unit.runtime.parts.data.clouds import FakeCloud, Upload, counted, failing, left, syncing

NOW = 1_800_000_000.0  # seconds since 1970


def put(path: Path, content: bytes = b"x", *, age: float = 60.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (NOW - age, NOW - age))
    return path


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    (tmp_path / "capture").mkdir()
    return tmp_path / "capture"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return tmp_path / "other"


def both(other: Path, **more: Any) -> SyncSettings:
    return SyncSettings(6.0, other_folders=(other,), **more)


def today() -> float:
    return NOW + trio.current_time()


async def test_files_go_in_pieces_and_are_deleted(autojump_clock: MockClock, capture: Path, other: Path) -> None:
    content = os.urandom(3 * PIECE + 5)
    put(other / "logs" / "a.txt", content)
    cloud = FakeCloud()
    async with syncing(capture, cloud, settings=both(other), today=lambda: NOW) as syncer:
        await trio.sleep(1)
    (upload,) = cloud.kept
    assert (upload.method, upload.data, upload.pieces) == ("FileUpload", content, 4)
    assert (upload.name, upload.metadata.file_extension) == ("other/logs/a.txt", ".txt")
    assert upload.metadata.type == 3
    assert upload.metadata.part_id == "part-1"
    assert upload.metadata.file_modify_time.seconds == int(NOW - 60)
    assert left(other) == []
    assert (syncer.sent.files, syncer.sent.bytes) == (1, len(content))


async def test_only_what_was_left_alone_goes(autojump_clock: MockClock, capture: Path, other: Path) -> None:
    put(other / "young.txt", age=5)
    put(other / "empty.txt", b"")
    put(other / "open.prog")
    (other / "link.txt").symlink_to(put(other.parent / "elsewhere.txt"))
    os.mkfifo(other / "pipe")
    cloud = FakeCloud()
    async with syncing(capture, cloud, settings=both(other, minimum_age=10.0), today=today):
        await trio.sleep(3)
        assert cloud.calls == []
        await trio.sleep(10)
        assert [upload.name for upload in cloud.kept] == ["other/young.txt"]
    assert left(other) == ["empty.txt", "link.txt", "open.prog"]
    assert (other / "pipe").exists()
    assert (other.parent / "elsewhere.txt").exists()


def test_a_clock_that_was_set_back_keeps_no_file(capture: Path, other: Path) -> None:
    tomorrow = put(other / "tomorrow.txt", age=-86_400)
    put(other / "being-written.txt", age=-5)  # its clock is slightly ahead
    assert [item.path for item in waiting(capture, [other], NOW, 10.0)] == [tomorrow]


async def test_folders_name_tags_and_datasets(autojump_clock: MockClock, capture: Path, other: Path) -> None:
    put(other / "tag=roof" / "dataset=d1" / "tag=a b" / "x.bin")
    cloud = FakeCloud()
    async with syncing(capture, cloud, settings=both(other), today=lambda: NOW):
        await trio.sleep(1)
    assert list(cloud.kept[0].metadata.tags) == ["roof", "a b"]
    assert list(cloud.kept[0].metadata.dataset_ids) == ["d1"]
    assert labels_of(Path("/data/x.bin")) == ([], [])
    assert labels_of(Path("/data/tag=x")) == ([], []), "folders only"


@pytest.mark.parametrize("status", [None, Status.INVALID_ARGUMENT])
async def test_names_that_are_not_text(
    autojump_clock: MockClock, capture: Path, other: Path, status: Status | None
) -> None:
    put(other / "tag=\udcfc" / "caf\udce9.txt")
    put(other / "z.txt")
    cloud = FakeCloud()
    if status is not None:
        cloud.before = failing(status, when=lambda item: item.name.startswith("other/tag"))
    async with syncing(capture, cloud, settings=both(other), today=lambda: NOW) as syncer:
        await trio.sleep(3)
    names = [element.name for element in cloud.kept]
    if status is None:
        assert sorted(names) == [r"other/tag=\xfc/caf\xe9.txt", "other/z.txt"]
        assert next(list(result.metadata.tags) for result in cloud.kept if "caf" in result.name) == [r"\xfc"]
        assert left(other) == []
    else:
        assert (names, syncer.refused) == (["other/z.txt"], 1)
        assert (other / "failed" / "tag=\udcfc" / "caf\udce9.txt").exists()


async def test_capture_files_of_other_folders_go_as_such(autojump_clock: MockClock, capture: Path, other: Path) -> None:
    counted(other, 2)
    put(other / "a.txt")
    cloud = FakeCloud()
    async with syncing(capture, cloud, settings=both(other), today=lambda: NOW - 60):
        await trio.sleep(1)
    assert cloud.numbers() == [0, 1], "they are whole, however young"
    assert left(other) == ["a.txt"]


async def test_a_folder_within_another_is_looked_at_once(autojump_clock: MockClock, capture: Path, other: Path) -> None:
    counted(capture, 2)
    put(capture / "sub" / "a.txt")
    cloud = FakeCloud()
    settings = SyncSettings(6.0, other_folders=(capture, capture / "sub"))
    async with syncing(capture, cloud, settings=settings, today=lambda: NOW):
        await trio.sleep(1)
    assert len(cloud.calls) == 3
    assert left(capture) == []


async def test_a_folder_that_is_not_there_holds_nothing(autojump_clock: MockClock, capture: Path, other: Path) -> None:
    counted(capture, 1)
    cloud = FakeCloud()
    async with syncing(capture, cloud, settings=both(other), today=today) as syncer:
        await trio.sleep(1)
        assert cloud.numbers() == [0]
        put(other / "later.txt")
        await trio.sleep(7)
        assert len(cloud.kept) == 2
        assert syncer.status()["last_error"] == ""


async def test_a_file_that_is_changed_meanwhile_goes_again(
    autojump_clock: MockClock, capture: Path, other: Path
) -> None:
    path = put(other / "a.txt", b"first")
    cloud = FakeCloud()

    async def change(upload: Upload) -> None:
        if len(cloud.calls) == 1:
            put(path, b"second")

    cloud.before = change
    async with syncing(capture, cloud, settings=both(other), today=today) as syncer:
        await trio.sleep(1)
        assert path.exists(), "what was not uploaded is not deleted"
        assert "was changed while it was uploaded" in syncer.status()["last_error"]
        await trio.sleep(10)
    assert [upload.data for upload in cloud.kept] == [b"first", b"second"]
    assert left(other) == []


async def test_a_file_that_becomes_shorter_meanwhile(
    autojump_clock: MockClock, capture: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(other / "a.txt", bytes(5 * PIECE))
    read = delivery._Opened.read

    def short(self: Any, offset: int, size: int) -> bytes:
        return b"" if offset > PIECE else read(self, offset, size)

    monkeypatch.setattr(delivery._Opened, "read", short)
    cloud = FakeCloud()
    async with syncing(capture, cloud, settings=both(other), today=today) as syncer:
        await trio.sleep(1)
        assert "became shorter" in syncer.status()["last_error"]
        assert cloud.kept == []
        monkeypatch.undo()
        await trio.sleep(10)
    assert len(cloud.kept[0].data) == 5 * PIECE


async def test_refused_files_go_to_the_folders_own_failed_folder(
    autojump_clock: MockClock, capture: Path, other: Path
) -> None:
    put(other / "sub" / "a.txt")
    put(other / "sub" / "b.txt")
    cloud = FakeCloud()
    cloud.before = failing(Status.INVALID_ARGUMENT, when=lambda item: item.name.endswith("a.txt"))
    async with syncing(capture, cloud, settings=both(other), today=today) as syncer:
        await trio.sleep(30)
        assert syncer.refused == 1
    assert (other / "failed" / "sub" / "a.txt").read_bytes() == b"x"
    assert len(cloud.calls) == 2
    assert left(other) == []


@pytest.mark.parametrize("name", ["n" * 250 + ".txt", "\u00e4" * 127, "n" * 255, "x." + "s" * 250])
async def test_files_with_the_longest_names(autojump_clock: MockClock, capture: Path, other: Path, name: str) -> None:
    for folder in ("good", "bad"):
        put(other / folder / name)
    put(other / "failed" / "bad" / name[:247])  # refused before
    cloud = FakeCloud()
    cloud.before = failing(Status.INVALID_ARGUMENT, when=lambda item: "/bad/" in item.name)
    async with syncing(capture, cloud, settings=both(other), today=today) as syncer:
        await trio.sleep(30)
        assert (syncer.sent.files, syncer.refused) == (1, 1)
        assert len(cloud.calls) == 2, "none is uploaded again"
    assert left(other) == []
    refused = [path for path in (other / "failed" / "bad").iterdir() if path.suffix != ".reason"]
    assert [path.read_bytes() for path in refused] == [b"x", b"x"]


async def test_a_missing_dataset_delays_no_other_file(autojump_clock: MockClock, capture: Path, other: Path) -> None:
    put(other / "dataset=gone" / "a.txt")
    counted(capture, 3)
    cloud = FakeCloud()
    cloud.before = failing(
        Status.NOT_FOUND, when=lambda item: bool(item.metadata.dataset_ids), message="no dataset gone"
    )
    async with syncing(capture, cloud, settings=both(other), today=today) as syncer:
        await trio.sleep(10)
        assert cloud.numbers() == [0, 1, 2]
        assert syncer.status()["problem"] == ""
        assert syncer.status()["last_error"] == "no dataset gone"


def test_files_of_all_folders_are_in_one_order(capture: Path, other: Path) -> None:
    (first,) = counted(capture, 1)
    before, after = put(other / "before"), put(other / "after")
    os.utime(before, (1_789_999_999, 1_789_999_999))
    os.utime(after, (1_790_000_001, 1_790_000_001))
    assert [item.path for item in waiting(capture, [other], NOW, 10.0)] == [before, first, after]

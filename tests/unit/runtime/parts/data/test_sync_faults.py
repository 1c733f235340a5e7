"""Failures on the way to the cloud, and files with unexpected content."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from google.rpc.error_details_pb2 import RetryInfo
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from trio.testing import MockClock

from runtime.parts.data.files.frames import framed
from runtime.parts.data.sync import waiting
from runtime.parts.data.sync.sync import MAX_DELAY, MAX_FULL_DELAY, SyncSettings
from runtime.parts.data.sync.upload import UNARY, limit_of
from tests.unit.runtime.parts.data.clouds import (
    FakeCloud,
    InlineDisk,
    Upload,
    camera,
    counted,
    failing,
    left,
    picture,
    reading,
    sensor,
    syncing,
    write,
)


class Refusing(InlineDisk):
    """A disk that refuses the functions with these names."""

    def __init__(self, error: int, *names: str) -> None:
        super().__init__()
        self.error = error
        self.names = names

    async def run(self, function: Callable[[], Any]) -> Any:
        if getattr(getattr(function, "func", function), "__name__", "") in self.names:
            raise OSError(self.error, os.strerror(self.error))
        return await super().run(function)


async def test_an_answer_that_is_lost(autojump_clock: MockClock, tmp_path: Path) -> None:
    counted(tmp_path, 3)
    cloud = FakeCloud()
    cloud.after = failing(Status.UNAVAILABLE, when=lambda upload: len(cloud.calls) in (1, 3))
    async with syncing(tmp_path, cloud):
        await trio.sleep(20)
    assert cloud.chunks() == [[0], [0], [1], [1], [2]]
    assert cloud.numbers() == [0, 1, 2]
    assert left(tmp_path) == []


async def test_a_deletion_that_is_cut(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that ends before deleting an acknowledged file uploads it again; the cloud keeps it once."""
    counted(tmp_path, 2)
    cloud = FakeCloud()
    before = left(tmp_path)

    def cut(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "delete", cut)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with syncing(tmp_path, cloud):
            await trio.sleep(1)
    assert caught.group_contains(KeyboardInterrupt)
    monkeypatch.undo()
    assert left(tmp_path) == before
    async with syncing(tmp_path, cloud):
        await trio.sleep(1)
    assert cloud.chunks() == [[0], [0], [1]]
    assert cloud.numbers() == [0, 1]
    assert left(tmp_path) == []


async def test_a_refused_file_is_moved_away_and_blocks_no_other(autojump_clock: MockClock, tmp_path: Path) -> None:
    paths = counted(tmp_path, 3)
    cloud, messages = FakeCloud(), [""]
    cloud.before = failing(Status.INVALID_ARGUMENT, when=lambda item: item.name == paths[1].name, message="too odd")
    async with syncing(tmp_path, cloud, report=messages.append) as syncer:
        await trio.sleep(1)
        rejected = tmp_path / "failed" / paths[1].relative_to(tmp_path)
        assert rejected.exists()
        why = rejected.with_name(f"{rejected.name}.reason")
        assert why.read_text() == "too odd\n"
        assert cloud.numbers() == [0, 2]
        assert left(tmp_path) == []
        assert messages[-1].startswith("1 files could not be uploaded")
        assert str(rejected) in messages[-1]
        assert (syncer.status()["put_aside"], syncer.status()["last_error"]) == (1, "too odd")
        await trio.sleep(60)
        assert len(cloud.calls) == 3, "it is not tried again"
        rejected.unlink()
        why.unlink()
        await trio.sleep(7)
        assert messages[-1] == ""


async def test_a_second_refused_file_of_the_same_name_is_moved_away_too(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    cloud = FakeCloud()
    cloud.before = failing(Status.INVALID_ARGUMENT)
    async with syncing(tmp_path, cloud):
        for _ in range(2):
            counted(tmp_path, 1)
            await trio.sleep(7)
    assert len(list((tmp_path / "failed").rglob("*.capture"))) == 2
    assert len(list((tmp_path / "failed").rglob("*.reason"))) == 2


@pytest.mark.parametrize("status", [Status.INTERNAL, Status.NOT_FOUND, Status.UNKNOWN])
async def test_a_file_that_fails_alone_is_tried_ever_more_seldom(
    autojump_clock: MockClock, tmp_path: Path, status: Status
) -> None:
    first, *_ = counted(tmp_path, 2)
    counted(tmp_path, 2, name="other", first=10)
    cloud, messages = FakeCloud(), [""]
    cloud.before = failing(status, when=lambda item: item.metadata.component_name == "s" and item.name == first.name)
    async with syncing(tmp_path, cloud, settings=SyncSettings(30.0), report=messages.append) as syncer:
        await trio.sleep(1)
        assert sorted(cloud.numbers()) == [1, 10, 11], "no other file waits for it"
        assert "1 files could not be uploaded and will be retried: no" in messages[-1]
        await trio.sleep(36_000)
        tries = [call.time for call in cloud.calls if call.name == first.name and call.metadata.component_name == "s"]
        assert tries[1] - tries[0] < 31
        assert 1800 <= tries[-1] - tries[-2] <= 3631
        assert len(tries) < 40
        cloud.before = failing(status, when=lambda element: False)
        await syncer.sync()
        assert 0 in cloud.numbers()
        assert messages[-1] == ""
    assert left(tmp_path) == []


async def test_exhausted_quota_is_retried_every_few_minutes(autojump_clock: MockClock, tmp_path: Path) -> None:
    first, _ = counted(tmp_path, 2)
    cloud = FakeCloud()
    cloud.before = failing(Status.RESOURCE_EXHAUSTED, when=lambda item: item.name == first.name)
    async with syncing(tmp_path, cloud):
        await trio.sleep(7200)
        tries = [call.time for call in cloud.calls if call.name == first.name]
        assert MAX_FULL_DELAY / 2 <= tries[-1] - tries[-2] <= MAX_FULL_DELAY + 6
        assert len(tries) < 80
        assert cloud.numbers() == [1], "no other file waits for it"
        cloud.before = failing(Status.RESOURCE_EXHAUSTED, when=lambda element: False)
        await trio.sleep(MAX_FULL_DELAY + 6)
    assert left(tmp_path) == []


@pytest.mark.parametrize("status", [Status.RESOURCE_EXHAUSTED, Status.UNAVAILABLE])
async def test_a_cloud_that_says_when_is_left_alone_until_then(
    autojump_clock: MockClock, tmp_path: Path, status: Status
) -> None:
    counted(tmp_path, 20)
    cloud = FakeCloud()
    wish = RetryInfo()
    wish.retry_delay.FromSeconds(100)
    cloud.before = failing(status, details=[wish])
    async with syncing(tmp_path, cloud):
        await trio.sleep(1000)
        gaps = [after.time - before.time for before, after in zip(cloud.calls, cloud.calls[1:], strict=False)]
        assert 100 <= min(gaps) <= max(gaps) <= 120
        assert {call.name for call in cloud.calls} == {cloud.calls[0].name}, "no other file is tried"
        cloud.before = failing(status, when=lambda item: False)
        await trio.sleep(120)
    assert cloud.numbers() == list(range(20))


async def test_a_full_disk_of_the_machine_moves_no_file_away(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file is uploaded even if its acknowledged progress cannot be saved."""
    counted(tmp_path, 1, each=3000, padding=1000)
    cloud, write_text = FakeCloud(), Path.write_text

    def full(path: Path, text: str, **more: Any) -> int:
        if ".progress" in path.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_text(path, text, **more)

    monkeypatch.setattr(Path, "write_text", full)
    async with syncing(tmp_path, cloud) as syncer:
        await trio.sleep(1)
    assert cloud.numbers() == list(range(3000))
    assert (syncer.refused, left(tmp_path), list((tmp_path / "failed").rglob("*"))) == (0, [], [])


@pytest.mark.parametrize(
    ("error", "name", "words"),
    [(errno.EMFILE, "CaptureReader", "cannot be read: Too many"), (errno.EROFS, "delete", "cannot be removed: Read-")],
)
async def test_errors_unrelated_to_the_file_do_not_move_it_away(
    autojump_clock: MockClock, tmp_path: Path, error: int, name: str, words: str
) -> None:
    paths = counted(tmp_path, 1)
    cloud = FakeCloud()
    disk = Refusing(error, name)
    async with syncing(tmp_path, cloud, disk=disk) as syncer:
        await trio.sleep(30)
        assert words in syncer.status()["last_error"]
        assert (syncer.refused, paths[0].exists()) == (0, True)
        disk.names = ()
        await syncer.sync()
    assert cloud.numbers() == [0]
    assert left(tmp_path) == []


@pytest.mark.parametrize("status", [Status.UNAVAILABLE, Status.UNAUTHENTICATED, Status.UNIMPLEMENTED])
async def test_a_cloud_that_takes_nothing_is_asked_ever_more_seldom(
    autojump_clock: MockClock, tmp_path: Path, status: Status
) -> None:
    counted(tmp_path, 50)
    cloud, messages = FakeCloud(), [""]
    cloud.before = failing(status, message="gone")
    async with syncing(tmp_path, cloud, report=messages.append) as syncer:
        await trio.sleep(3600)
        assert {call.name for call in cloud.calls} == {cloud.calls[0].name}, "no other file is tried"
        assert 3600 / MAX_DELAY <= len(cloud.calls) < 3 * 3600 / MAX_DELAY
        gaps = [after.time - before.time for before, after in zip(cloud.calls, cloud.calls[1:], strict=False)]
        assert gaps[0] < 1
        assert MAX_DELAY / 2 <= max(gaps) <= MAX_DELAY
        assert len(set(gaps)) > 30, "with jitter"
        assert (syncer.status()["problem"], syncer.status()["waiting_files"]) == ("gone", 50)
        assert ("gone" in messages[-1]) == (status is not Status.UNAVAILABLE), "being offline is nothing to deal with"
        cloud.before = failing(status, when=lambda item: False)
        await trio.sleep(MAX_DELAY)
        assert cloud.numbers() == list(range(50))
        assert (syncer.status()["problem"], messages[-1]) == ("", "")


async def test_waiting_files_are_uploaded_as_soon_as_the_cloud_is_back(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    counted(tmp_path, 3)
    cloud = FakeCloud()
    cloud.before = failing(Status.UNAVAILABLE, message="gone")
    async with syncing(tmp_path, cloud, settings=SyncSettings(86_400.0)) as syncer:
        await trio.sleep(3600)
        tried = len(cloud.calls)
        assert syncer.status()["problem"] == "gone"
        cloud.before = failing(Status.UNAVAILABLE, when=lambda item: False)
        syncer.cloud_is_back()
        await trio.testing.wait_all_tasks_blocked()
        assert cloud.numbers() == [0, 1, 2]
        assert len(cloud.calls) == tried + 3
        counted(tmp_path, 1, first=10)
        syncer.cloud_is_back()  # the cloud was not away: the next upload waits for its time
        await trio.testing.wait_all_tasks_blocked()
        assert cloud.numbers() == [0, 1, 2]


async def test_a_cloud_that_does_not_answer(autojump_clock: MockClock, tmp_path: Path) -> None:
    counted(tmp_path, 2)
    cloud = FakeCloud()

    async def never(upload: Upload) -> None:
        if len(cloud.calls) == 1:
            await trio.sleep_forever()

    cloud.before = never
    async with syncing(tmp_path, cloud) as syncer:
        await trio.sleep(29)
        assert syncer.status()["problem"] == ""
        await trio.sleep(1.1)
        assert syncer.status()["problem"] == "no answer within 30 s"
        await trio.sleep(2)
    assert cloud.numbers() == [0, 1]
    assert limit_of(2**30) > 2**30 / 8192, "what is large has the time that it needs"


async def test_a_refusal_comes_before_all_was_sent(autojump_clock: MockClock, tmp_path: Path) -> None:
    write(tmp_path, camera(), picture(bytes(50 * UNARY)), 0, "video/mp4")
    cloud = FakeCloud()

    async def at_once(stream: Any) -> None:
        await stream.recv_message()
        raise GRPCError(Status.INVALID_ARGUMENT, "no videos")

    cloud._stream = at_once  # type: ignore[method-assign]
    async with syncing(tmp_path, cloud) as syncer:
        await trio.sleep(1)
        assert syncer.status()["last_error"] == "no videos"
    assert left(tmp_path) == []


async def test_of_a_damaged_file_goes_what_is_whole(autojump_clock: MockClock, tmp_path: Path) -> None:
    path = write(tmp_path, sensor(), reading(1) + reading(2) + framed(b"\xff\xff\xff") + reading(3))
    cloud = FakeCloud()
    async with syncing(tmp_path, cloud) as syncer:
        await trio.sleep(1)
        assert "SensorData" in syncer.status()["last_error"]
    assert cloud.numbers() == [], "an invalid message fails its whole batch"
    assert (tmp_path / "failed" / path.relative_to(tmp_path)).exists()


@pytest.mark.parametrize("cut", [1, 5, 30])
async def test_of_a_file_that_ends_too_early_goes_what_is_whole(
    autojump_clock: MockClock, tmp_path: Path, cut: int
) -> None:
    path = write(tmp_path, sensor(), reading(1) + reading(2) + reading(3))
    path.write_bytes(path.read_bytes()[:-cut])
    cloud = FakeCloud()
    async with syncing(tmp_path, cloud):
        await trio.sleep(1)
    assert cloud.numbers() == [1, 2]
    assert (tmp_path / "failed" / path.relative_to(tmp_path)).exists()


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"hello", b"\x03abc", framed(b"\x0a\x01x")])
async def test_a_file_that_is_not_a_capture_file_is_moved_away(
    autojump_clock: MockClock, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "x.capture").write_bytes(content)
    counted(tmp_path, 1)
    cloud = FakeCloud()
    async with syncing(tmp_path, cloud):
        await trio.sleep(1)
    assert cloud.numbers() == [0]
    assert (tmp_path / "failed" / "x.capture").read_bytes() == content


@pytest.mark.parametrize("rest", [b"\xff" * 12, b"\x80", b"\x90\x4e"])
async def test_pictures_that_are_cut(autojump_clock: MockClock, tmp_path: Path, rest: bytes) -> None:
    write(tmp_path, camera(), picture(b"one") + rest, 0, "image/png")
    cloud = FakeCloud()
    async with syncing(tmp_path, cloud) as syncer:
        await trio.sleep(1)
        assert syncer.refused == 1
    assert [upload.contents[0].binary for upload in cloud.kept] == [b"one"]


async def test_a_file_that_vanishes_is_not_an_error(autojump_clock: MockClock, tmp_path: Path) -> None:
    paths = counted(tmp_path, 3)
    cloud = FakeCloud()

    async def vanish(upload: Upload) -> None:
        paths[1].unlink(missing_ok=True)

    cloud.before = vanish
    async with syncing(tmp_path, cloud) as syncer:
        await trio.sleep(1)
        assert (syncer.refused, syncer.status()["last_error"]) == (0, "")
    assert cloud.numbers() == [0, 2]

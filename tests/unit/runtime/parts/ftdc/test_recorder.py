"""The ring of files and the diary, in virtual time; the disk is a folder of the test."""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog.testing
import trio
import trio.testing

from engine.metrics.history import History
from engine.part import PartContext
from runtime.parts.ftdc.recorder import PERIOD, RETRY, SYNC_INTERVAL, WAITING, Diary, Recorder, folder_of
from schema.document.machine import MachineDocument
from support.files.file_ring import SMALL, FileRing
from telemetry.metrics.ftdc import read_ftdc

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


def ring(folder: Path, *, limit: int = 10_000, keep: int = 3) -> FileRing:
    return FileRing(folder, "machine-server-", ".ftdc", limit=limit, keep=keep)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_names_tell_the_time_in_utc(tmp_path: Path) -> None:
    files = ring(tmp_path / "new" / "folder")
    assert files.open(NOON).name == "machine-server-2026-01-02T12-00-00Z.ftdc"
    files.close()


def test_two_files_of_one_second_have_different_names(tmp_path: Path) -> None:
    files = ring(tmp_path)
    for _ in range(2):
        files.open(NOON)
        files.write(b"x")
    assert names(tmp_path)[1] == "machine-server-2026-01-02T12-00-01Z.ftdc"
    files.close()


def test_files_that_stay_empty_push_no_others_out(tmp_path: Path) -> None:
    files = ring(tmp_path, keep=3)
    for hour in range(3):
        files.open(NOON + timedelta(hours=hour))
        files.write(b"x")
    for hour in range(3, 10):  # the disk allows creating files but not writing them
        files.open(NOON + timedelta(hours=hour))
    files.close()
    assert [name[15:28] for name in names(tmp_path)] == ["2026-01-02T12", "2026-01-02T13", "2026-01-02T14"]


def test_small_files_of_many_starts_push_no_large_one_out_until_they_are_too_many(tmp_path: Path) -> None:
    files = ring(tmp_path, limit=100, keep=2)
    files.open(NOON)
    files.write(bytes(90))
    for minute in range(1, SMALL * 2):
        files.open(NOON + timedelta(minutes=minute))
        files.write(b"x")
    assert len(names(tmp_path)) == SMALL * 2
    assert "12-00" in names(tmp_path)[0]
    files.open(NOON + timedelta(hours=1))
    files.write(b"x")
    files.close()
    assert len(names(tmp_path)) == SMALL * 2
    assert "12-01" in names(tmp_path)[0]


def test_the_oldest_are_deleted_and_other_files_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("kept")
    files = ring(tmp_path, limit=1, keep=3)
    for hour in range(5):
        files.open(NOON + timedelta(hours=hour))
        files.write(b"x")
    files.close()
    assert [name[15:28] for name in names(tmp_path)[:-1]] == ["2026-01-02T14", "2026-01-02T15", "2026-01-02T16"]
    assert names(tmp_path)[-1] == "notes.txt"


def test_a_clock_that_was_set_back_deletes_no_file_in_use(tmp_path: Path) -> None:
    files = ring(tmp_path, limit=1, keep=2)
    for hour in (3, 2, 1, 0):
        current = files.open(NOON + timedelta(hours=hour))
        files.write(b"x")
        assert current.read_bytes() == b"x"
    files.close()


def test_it_is_full_at_its_limit(tmp_path: Path) -> None:
    files = ring(tmp_path, limit=10)
    path = files.open(NOON)
    files.write(b"123456789")
    assert not files.is_full
    files.write(b"0")
    assert files.is_full
    files.close()
    assert not files.is_open
    assert path.read_bytes() == b"1234567890"


def test_a_sample_cut_off_by_a_full_disk_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    files = ring(tmp_path)
    path = files.open(NOON)
    files.write(b"whole")
    write = os.write
    left = [3]

    def full(fd: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count, left[0] = left[0], 0
        return write(fd, data[:count])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        files.write(b"second")
    monkeypatch.undo()
    assert path.read_bytes() == b"whole"
    files.write(b" and more")
    files.close()
    assert path.read_bytes() == b"whole and more"


@pytest.mark.parametrize(
    ("part", "name"), [("", "local-config"), ("a-b-c", "a-b-c"), ("../../etc", "_.._etc"), ("..", "local-config")]
)
def test_a_folder_for_each_part(part: str, name: str) -> None:
    assert folder_of(Path("/home/m"), part) == Path("/home/m/diagnostics.data") / name


# ---- the diary


class Disk:
    """A simulated disk thread: it counts the waits and ends each when the test allows it."""

    def __init__(self) -> None:
        self.waits = 0
        self.may_end = trio.Event()
        self.may_end.set()

    async def sync(self, wait: Callable[[], None]) -> None:
        self.waits += 1
        await self.may_end.wait()
        wait()


class Counter:
    """A sample source whose value is the number of samples."""

    def __init__(self) -> None:
        self.taken = 0

    def sample(self) -> dict[str, float]:
        self.taken += 1
        return {"taken": float(self.taken)}


def content(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def recorded(folder: Path) -> list[float]:
    return [value for data in content(folder) for value in read_ftdc(data).series["taken"].values]


async def started(nursery: trio.Nursery, diary: Diary) -> None:
    await nursery.start(lambda *, task_status: diary.run(task_status=task_status))


async def test_a_sample_each_second_and_the_disk_is_waited_for_each_thirty(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    disk, counter = Disk(), Counter()
    async with trio.open_nursery() as nursery:
        await started(nursery, Diary(counter.sample, ring(tmp_path), disk.sync))
        await trio.sleep(SYNC_INTERVAL * 2 * PERIOD + PERIOD / 2)
        nursery.cancel_scope.cancel()
    assert recorded(tmp_path) == [float(number + 1) for number in range(SYNC_INTERVAL * 2 + 1)]
    assert disk.waits == 2
    assert read_ftdc(content(tmp_path)[0]).series["trio.LateMs"].values == [0.0] * (SYNC_INTERVAL * 2 + 1)


async def test_a_slow_disk_delays_no_sample_and_loses_none(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    disk, counter = Disk(), Counter()
    disk.may_end = trio.Event()
    async with trio.open_nursery() as nursery:
        await started(nursery, Diary(counter.sample, ring(tmp_path), disk.sync))
        await trio.sleep(SYNC_INTERVAL * PERIOD + 10 * PERIOD + PERIOD / 2)
        assert counter.taken == SYNC_INTERVAL + 11
        assert len(recorded(tmp_path)) == SYNC_INTERVAL  # nothing is written while the disk is busy
        disk.may_end.set()
        await trio.sleep(PERIOD)
        assert len(recorded(tmp_path)) == SYNC_INTERVAL + 12
        nursery.cancel_scope.cancel()


async def test_a_disk_that_stands_still_holds_up_nothing_and_fills_no_memory(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    disk, still, counter = Disk(), Disk(), Counter()
    diary = Diary(counter.sample, ring(tmp_path, limit=100_000), disk.sync, still.sync)
    async with trio.open_nursery() as nursery:
        await started(nursery, diary)
        await trio.sleep(10.5 * PERIOD)
        still.may_end = trio.Event()
        await trio.sleep((WAITING + 100) * PERIOD)
        assert counter.taken == WAITING + 111
        assert len(recorded(tmp_path)) == 11
        still.may_end.set()
        await trio.sleep(2 * PERIOD)
        nursery.cancel_scope.cancel()
    assert len(recorded(tmp_path)) == counter.taken - diary.dropped
    assert diary.dropped == 100


async def test_samples_taken_while_the_disk_was_busy_are_written_at_the_end(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    disk, counter = Disk(), Counter()
    disk.may_end = trio.Event()
    async with trio.open_nursery() as nursery:
        await started(nursery, Diary(counter.sample, ring(tmp_path), disk.sync))
        await trio.sleep((SYNC_INTERVAL + 5) * PERIOD)
        nursery.cancel_scope.cancel()
    assert len(recorded(tmp_path)) == counter.taken


async def test_a_new_file_begins_with_a_schema_when_one_is_full(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    disk, counter = Disk(), Counter()
    async with trio.open_nursery() as nursery:
        await started(nursery, Diary(counter.sample, ring(tmp_path, limit=100, keep=100), disk.sync))
        await trio.sleep(20.5 * PERIOD)
        nursery.cancel_scope.cancel()
    assert len(names(tmp_path)) > 1
    assert recorded(tmp_path) == [float(number + 1) for number in range(21)]
    assert all(not read_ftdc(data).problem for data in content(tmp_path))


class Refusing(FileRing):
    """A ring whose disk can refuse writes."""

    refuses = True

    def write(self, data: bytes) -> None:
        if self.refuses:
            raise OSError(errno.EROFS, "Read-only file system")
        super().write(data)


async def test_a_failing_disk_is_reported_once_and_retried_later(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    disk, counter = Disk(), Counter()
    files = Refusing(tmp_path, "machine-server-", ".ftdc", limit=10_000, keep=3)
    diary = Diary(counter.sample, files, disk.sync)
    with structlog.testing.capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            await started(nursery, diary)
            await trio.sleep(3 * RETRY)
            assert [entry["log_level"] for entry in logs] == ["warning"]
            assert logs[0]["reason"] == "Read-only file system"
            files.refuses = False
            await trio.sleep(RETRY + PERIOD / 2)
            nursery.cancel_scope.cancel()
    assert [entry["event"] for entry in logs] == [
        "diagnostic data is not recorded",
        "diagnostic data is recorded again",
    ]
    assert all(content(tmp_path)), "an empty file was left"
    assert sum(read_ftdc(data).samples for data in content(tmp_path)) == counter.taken - diary.dropped
    assert 0 < diary.dropped < counter.taken


async def test_a_disk_that_fails_during_sync_is_reported_too(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    counter = Counter()

    async def broken(wait: Callable[[], None]) -> None:
        wait()
        raise OSError(errno.EIO, "Input/output error")

    with structlog.testing.capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            await started(nursery, Diary(counter.sample, ring(tmp_path), broken))
            await trio.sleep((SYNC_INTERVAL + 2) * PERIOD)
            nursery.cancel_scope.cancel()
    entries: list[Any] = [entry["event"] for entry in logs]
    assert entries == ["diagnostic data is not recorded"]


async def test_the_error_for_a_user_without_a_home_names_the_option(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    around = cast("PartContext", SimpleNamespace(history=History(), sample=dict, environment={}))
    (node,) = Recorder(around).nodes(MachineDocument())
    with structlog.testing.capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            await nursery.start(lambda *, task_status: node.run({}, task_status=task_status))
            nursery.cancel_scope.cancel()
    assert [entry["remedy"] for entry in logs] == ["set MACHINE_HOME"]

"""The queue on disk: no durable record is lost without a gap in its place, whatever happens to the files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from telemetry.outbox.queue import UNREADABLE, Gap, Outbox
from telemetry.outbox.records import MARK, MAX_DATA, OVERHEAD, OutboxRecord, encode, scan

T = TypeVar("T")


async def here(function: Callable[[], T]) -> T:
    """Call a function directly, instead of in a worker."""
    return function()


def now(awaitable: object) -> object:
    """Return the result of a coroutine that never waits."""
    try:
        awaitable.send(None)  # type: ignore[attr-defined]
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


@contextmanager
def opened(folder: Path, **limits: int) -> Iterator[Outbox]:
    outbox = Outbox(folder, here, **limits)
    try:
        yield outbox
    finally:
        outbox.close()


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.segment"))


def texts(items: object) -> list[str]:
    return [
        f"gap {item.first}-{item.last}" if isinstance(item, Gap) else item.data.decode()
        for item in items  # type: ignore[attr-defined]
    ]


# ---- records


def test_a_record_is_found_behind_any_damage() -> None:
    good = [encode(OutboxRecord(number, b"x" * number)) for number in range(1, 5)]
    assert [record.number for record in scan(b"".join(good))] == [1, 2, 3, 4]
    assert len(good[2]) == OVERHEAD + 3
    torn = b"\0\0" + good[0] + good[1][:-1] + good[2] + MARK + good[3] + good[3][:7]
    assert list(scan(torn)) == [OutboxRecord(1, b"x"), OutboxRecord(3, b"xxx"), OutboxRecord(4, b"xxxx")]


def test_a_record_that_comes_again_is_passed_over() -> None:
    first, two = encode(OutboxRecord(1, b"a")), encode(OutboxRecord(2, b"b"))
    assert [record.number for record in scan(two + first + two)] == [2]


def test_a_record_has_a_largest_size() -> None:
    encode(OutboxRecord(1, b"x" * MAX_DATA))
    with pytest.raises(ValueError, match="1048577 bytes"):
        encode(OutboxRecord(1, b"x" * (MAX_DATA + 1)))


@given(st.binary(max_size=300))
def test_nothing_is_found_in_noise(noise: bytes) -> None:
    assert all(encode(record) in noise for record in scan(noise))


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=8), st.data())
def test_one_changed_byte_costs_one_record(datas: list[bytes], data: st.DataObject) -> None:
    encoded = [encode(OutboxRecord(number, first)) for number, first in enumerate(datas)]
    whole = bytearray(b"".join(encoded))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    starts = [sum(map(len, encoded[:index])) for index in range(len(encoded))]
    hit = max(index for index, start in enumerate(starts) if start <= place)
    results = list(scan(bytes(whole)))
    assert results == [OutboxRecord(number, left) for number, left in enumerate(datas) if number != hit]


# ---- the queue


async def test_appended_items_are_read_once_durable(tmp_path: Path) -> None:
    with opened(tmp_path / "box") as outbox:
        assert [outbox.append(word) for word in (b"a", b"b")] == [1, 2]
        assert await outbox.read() == ((), 0)
        assert await outbox.sync() == 2
        assert texts((await outbox.read()).items) == ["a", "b"]
        assert texts((await outbox.read(1)).items) == ["a"]  # reading removes nothing
        outbox.acknowledge(1)
        batch = await outbox.read()
        assert (texts(batch.items), batch.last) == (["b"], 2)
        outbox.acknowledge(2)
        outbox.acknowledge(1)  # does not move back
        assert await outbox.read() == ((), 0)


async def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as outbox:
        for word in (b"a", b"b", b"c"):
            outbox.append(word)
        await outbox.sync()
        outbox.acknowledge(1)
    with opened(tmp_path) as outbox:
        assert outbox.acknowledged == 1
        assert outbox.append(b"d") == 4
        await outbox.sync()
        assert texts((await outbox.read()).items) == ["b", "c", "d"]
    with opened(tmp_path) as outbox:
        await outbox.sync()
        outbox.acknowledge(4)
        await outbox.sync()
    with opened(tmp_path) as outbox:
        assert outbox.append(b"e") == 5  # numbers are never reused


async def test_it_is_for_its_owner_and_for_one_process(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "box"
    with opened(folder) as outbox:
        outbox.append(b"x")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        with pytest.raises(BlockingIOError):
            Outbox(folder, here)
    Outbox(folder, here).close()


async def test_files_that_the_disk_cannot_read_do_not_stop_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as outbox:
        outbox.append(b"a")
        await outbox.sync()
    with opened(tmp_path) as outbox:
        outbox.append(b"b")

    def broken(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    bad = segments(tmp_path)[-1]
    read = Path.read_bytes
    monkeypatch.setattr(os, "pread", broken)
    monkeypatch.setattr(Path, "read_bytes", lambda path: broken() if path == bad else read(path))
    with opened(tmp_path) as outbox:
        monkeypatch.undo()
        outbox.append(b"c")
        await outbox.sync()
        assert texts((await outbox.read()).items) == ["a", "gap 2-2", "c"]
    assert os.listdir(tmp_path).count(f"{bad.name}{UNREADABLE}") == 1


async def test_the_oldest_items_are_dropped_at_the_limit_and_counted_exactly(tmp_path: Path) -> None:
    size = OVERHEAD + 4
    with opened(tmp_path, max_bytes=6 * size, segment_bytes=2 * size) as outbox:
        for number in range(1, 12):
            outbox.append(f"{number:04}".encode())
            assert outbox.size <= 6 * size
        await outbox.sync()
        reported = texts((await outbox.read()).items)
    assert reported == ["gap 1-6", "0007", "0008", "0009", "0010", "0011"]
    with opened(tmp_path) as outbox:  # also after a restart
        await outbox.sync()
        assert texts((await outbox.read()).items) == reported
        outbox.acknowledge(6)
        assert texts((await outbox.read()).items) == reported[1:]


async def test_finished_segments_are_deleted_and_acknowledged_ones_are_not_a_gap(tmp_path: Path) -> None:
    size = OVERHEAD + 1
    with opened(tmp_path, segment_bytes=2 * size) as outbox:
        for word in (b"a", b"b", b"c", b"d", b"e"):
            outbox.append(word)
        await outbox.sync()
        outbox.acknowledge(3)
        assert len(segments(tmp_path)) == 3  # the cursor is not on the disk yet
        await outbox.sync()
        assert [segment.name for segment in segments(tmp_path)] == [f"{3:020}.segment", f"{5:020}.segment"]
    with opened(tmp_path) as outbox:
        await outbox.sync()
        assert texts((await outbox.read()).items) == ["d", "e"]


async def test_a_segment_stays_until_the_cursor_behind_it_is_on_the_disk(tmp_path: Path) -> None:
    """Acknowledged during a write to the disk: after a power cut, that cursor may be missing."""

    async def meanwhile(function: Callable[[], T]) -> T:
        result = function()
        outbox.acknowledge(2)
        return result

    outbox = Outbox(tmp_path, meanwhile, segment_bytes=2 * (OVERHEAD + 1))
    for word in (b"a", b"b", b"c"):
        outbox.append(word)
    await outbox.sync()
    assert len(segments(tmp_path)) == 2
    await outbox.sync()
    assert len(segments(tmp_path)) == 1
    outbox.close()


async def test_a_damaged_segment_costs_only_itself(tmp_path: Path) -> None:
    size = OVERHEAD + 1
    with opened(tmp_path, segment_bytes=2 * size) as outbox:
        for word in b"abcdef":
            outbox.append(bytes([word]))
        await outbox.sync()
    middle = segments(tmp_path)[1]
    middle.write_bytes(b"\0" * middle.stat().st_size)
    with opened(tmp_path) as outbox:
        await outbox.sync()
        assert texts((await outbox.read()).items) == ["a", "b", "gap 3-4", "e", "f"]
        batch = await outbox.read(3)
        assert (texts(batch.items), batch.last) == (["a", "b", "gap 3-4"], 4)


async def test_a_partial_write_after_a_crash_is_skipped(tmp_path: Path) -> None:
    with opened(tmp_path) as outbox:
        outbox.append(b"a")
        outbox.append(b"torn")
        await outbox.sync()
    (only,) = segments(tmp_path)
    with only.open("r+b") as file:
        file.truncate(only.stat().st_size - 1)
    with opened(tmp_path) as outbox:
        assert outbox.append(b"b") == 2
        await outbox.sync()
        assert texts((await outbox.read()).items) == ["a", "b"]
    assert len(segments(tmp_path)) == 2


async def test_a_newest_segment_without_a_record_is_removed(tmp_path: Path) -> None:
    with opened(tmp_path) as outbox:
        outbox.append(b"a")
        await outbox.sync()
    (tmp_path / f"{2:020}.segment").write_bytes(b"\0" * 100)
    with opened(tmp_path) as outbox:
        assert outbox.append(b"b") == 2
        await outbox.sync()
        assert texts((await outbox.read()).items) == ["a", "b"]


@pytest.mark.parametrize("damage", ["removed", "one slot", "both slots"])
async def test_a_damaged_cursor_gives_again_but_invents_no_loss(tmp_path: Path, damage: str) -> None:
    size = OVERHEAD + 1
    with opened(tmp_path, segment_bytes=2 * size) as outbox:
        for word in b"abcdef":
            outbox.append(bytes([word]))
        await outbox.sync()
        for number in (2, 3):
            outbox.acknowledge(number)
            await outbox.sync()
    cursor = tmp_path / "cursor"
    if damage == "removed":
        cursor.unlink()
    else:
        data = bytearray(cursor.read_bytes())
        newest = max(range(2), key=lambda slot: int.from_bytes(data[slot * 12 : slot * 12 + 8], "big"))
        for slot in range(2) if damage == "both slots" else (newest,):
            data[slot * 12] ^= 1
        cursor.write_bytes(data)
    with opened(tmp_path) as outbox:
        await outbox.sync()
        assert texts((await outbox.read()).items) == ["c", "d", "e", "f"]


async def test_a_full_disk_is_an_error_for_the_writer_and_a_gap_for_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, free = os.write, [OVERHEAD + 1 + 5]

    def write(fd: int, data: bytes) -> int:
        some = data[: free[0]]
        if not some:
            raise OSError(errno.ENOSPC, "No space left on device")
        free[0] -= len(some)
        return real(fd, some)

    monkeypatch.setattr(os, "write", write)
    with opened(tmp_path) as outbox:
        outbox.append(b"a")
        for _ in range(3):  # the first of them is partially written
            with pytest.raises(OSError, match="No space"):
                outbox.append(b"b")
        assert outbox.size == OVERHEAD + 1
        free[0] = 1000
        assert outbox.append(b"c") == 5
        await outbox.sync()
        assert texts((await outbox.read()).items) == ["a", "gap 2-4", "c"]


async def test_a_record_that_is_too_large_is_a_gap(tmp_path: Path) -> None:
    with opened(tmp_path) as outbox:
        with pytest.raises(ValueError, match="the limit is"):
            outbox.append(b"x" * (MAX_DATA + 1))
        outbox.append(b"a")
        await outbox.sync()
        assert texts((await outbox.read()).items) == ["gap 1-1", "a"]


async def test_a_failing_disk_makes_nothing_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with opened(tmp_path) as outbox:
        outbox.append(b"a")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(OSError, match="Input/output"):
                await outbox.sync()
        assert (outbox.durable, await outbox.read()) == (0, ((), 0))
        synced: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
            await outbox.sync()
        assert sorted(Path(item).name for item in synced) == [f"{1:020}.segment", "cursor", tmp_path.name]
        assert outbox.durable == 1


class Model(RuleBasedStateMachine):
    """Appends, syncs, batches, restarts, kills and power cuts in any order, compared with a list."""

    @initialize()
    def begin(self) -> None:
        import tempfile

        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name)
        self.said: dict[int, str] = {}
        self.durable = 0
        self.delivered: dict[int, str] = {}
        self.acknowledged = 0
        self._open()

    def _open(self) -> None:
        self.outbox = Outbox(self.path, here, max_bytes=400, segment_bytes=100)

    @rule(text=st.text("ab", max_size=12))
    def append(self, text: str) -> None:
        number = self.outbox.append(text.encode())
        assert number == max(self.said, default=0) + 1
        self.said[number] = text

    @rule()
    def sync(self) -> None:
        assert now(self.outbox.sync()) == max(self.said, default=0)
        self.durable = max(self.said, default=0)

    @rule(limit=st.integers(1, 6), part=st.integers(0, 6), acknowledge=st.booleans())
    def read(self, limit: int, part: int, acknowledge: bool) -> None:
        items, last = now(self.outbox.read(limit))  # type: ignore[misc]
        assert len(items) <= limit
        expected = self.outbox.acknowledged + 1
        for item in items:
            if isinstance(item, Gap):
                assert item.first == expected
                assert item.last >= item.first
                expected = item.last + 1
            else:
                assert item.number == expected
                assert self.said[item.number] == item.data.decode()
                expected += 1
        assert last == (expected - 1 if items else 0)
        assert last <= self.durable
        if not items:
            assert self.outbox.acknowledged == self.durable
        if acknowledge and last:
            self.outbox.acknowledge(last)
            self.acknowledged = last

    @rule(tail=st.integers(0, 300))
    def power_cut(self, tail: int) -> None:
        """Lose a part of the unsynced data: segments keep what is durable and up to `tail` bytes more."""
        self.outbox.close()
        for path in sorted(self.path.glob("*.segment")):
            records = list(scan(path.read_bytes()))
            kept = sum(OVERHEAD + len(record.data) for record in records if record.number <= self.durable)
            if kept + tail < path.stat().st_size:
                os.truncate(path, kept + tail)
                tail = 0
        self._open()
        now(self.outbox.sync())
        last = self.outbox.durable
        assert last >= self.durable
        self.said = {number: text for number, text in self.said.items() if number <= last}
        self.durable = last

    @rule()
    def kill(self) -> None:
        self.outbox.close()  # only releases descriptors, as the end of the process does
        self._open()
        self.sync()

    @precondition(lambda self: hasattr(self, "outbox"))
    @invariant()
    def bounded(self) -> None:
        assert sum(path.stat().st_size for path in self.path.glob("*.segment")) <= 400 + 0

    def teardown(self) -> None:
        if hasattr(self, "outbox"):
            self.outbox.close()
            self._folder.cleanup()


TestModel = Model.TestCase

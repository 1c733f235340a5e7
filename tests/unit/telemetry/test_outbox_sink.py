"""Log messages in the outbox: stored, synced to the disk in time, passed to an uploader, losses reported in place."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
import trio
import trio.testing

from telemetry.logs import loggers
from telemetry.logs.entry import Entry
from telemetry.logs.outbox_sink import LAST_SYNC_LIMIT, MAX_UPLOAD, SYNC_DELAY, OutboxSink
from telemetry.outbox.queue import Outbox
from telemetry.outbox.records import OVERHEAD

T = TypeVar("T")


async def here(function: Callable[[], T]) -> T:
    """Call a function directly, instead of in a worker."""
    return function()


def entry(message: str, seq: int = 1) -> Entry:
    return Entry(seq, 12.5, 20, "rdk", "a.py:1", message, {"pin": 7, "who": ["a"]}, "Traceback")


async def test_synced_waits_until_messages_are_on_the_disk(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    outbox = Outbox(tmp_path, here)
    sink = OutboxSink(outbox)
    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        await sink.synced()
        for number in range(3):
            sink.write(entry("a", number))
            assert outbox.durable == number
            await sink.synced()
            assert outbox.durable == number + 1
        nursery.cancel_scope.cancel()
    sink.close()


async def test_messages_come_out_as_they_went_in(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    sink = OutboxSink(Outbox(tmp_path, here))
    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        sink.write(entry("a"))
        sink.write(entry("b", 2))
        began = trio.current_time()
        upload = await sink.next()
        assert upload[:2] == ((entry("a"), entry("b", 2)), 2)
        assert trio.current_time() - began <= SYNC_DELAY
        assert (await sink.next(1)).last == 2, "the very same until they are acknowledged"
        sink.acknowledge(1)
        assert (await sink.next()).entries == (entry("b", 2),)
        sink.acknowledge(2)
        with trio.move_on_after(60) as waiting:
            await sink.next()
        assert waiting.cancelled_caught
        sink.write(entry("c"))
        assert (await sink.next()).entries == (entry("c"),)
        nursery.cancel_scope.cancel()
    sink.close()


async def test_the_last_entries_are_on_the_disk_at_the_end(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, here)
    sink = OutboxSink(outbox)
    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        sink.write(entry("last words"))
        nursery.cancel_scope.cancel()
    assert outbox.durable == 1
    sink.close()


async def test_a_disk_that_hangs_does_not_keep_the_end_back(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async def never(function: Callable[[], T]) -> T:
        await trio.sleep_forever()
        return function()

    sink = OutboxSink(Outbox(tmp_path, never))
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        nursery.cancel_scope.cancel()
    assert trio.current_time() - began == pytest.approx(LAST_SYNC_LIMIT)
    sink.close()


async def test_the_disk_is_not_touched_without_a_reason(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    syncs = 0

    async def counting(function: Callable[[], T]) -> T:
        nonlocal syncs
        syncs += 1
        return function()

    sink = OutboxSink(Outbox(tmp_path, counting))
    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        await trio.sleep(100)
        assert syncs == 1
        for _ in range(10):
            sink.write(entry("x"))
        await trio.sleep(100)
        assert syncs == 2
        nursery.cancel_scope.cancel()
    sink.close()


async def test_losses_are_reported_in_order(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    size = OVERHEAD + len(b'{"seq":1,"time":12.5,"level":20,"logger":"rdk","caller":"a.py:1","message":"0000",')
    sink = OutboxSink(Outbox(tmp_path, here, max_bytes=8 * size, segment_bytes=2 * size))
    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        for number in range(20):
            sink.write(entry(f"{number:04}"))
        entries, last, _ = await sink.next()
        nursery.cancel_scope.cancel()
    sink.close()
    lost = 20 - (len(entries) - 1)
    assert 0 < lost < 20
    assert last == 20
    assert (entries[0].logger, entries[0].level_name) == ("rdk.logs", "WARN")
    assert entries[0].message == f"{lost} log messages were lost before they could be uploaded"
    assert entries[0].fields == {"lost": lost, "first": 1, "last": lost}
    assert [item.message for item in entries[1:]] == [f"{number:04}" for number in range(lost, 20)]


async def test_a_full_disk_is_reported_once_and_only_loses_messages(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = OutboxSink(Outbox(tmp_path, here))
    before = logging.getLogger().level
    logs = loggers.configure_logs([sink], clock=trio.current_time)
    try:
        loggers.get_logger().info("a")
        with monkeypatch.context() as patch:

            def full(fd: int, data: bytes) -> int:
                raise OSError(errno.ENOSPC, "No space left on device")

            patch.setattr(os, "write", full)
            for word in "bcd":
                loggers.get_logger().info(word)
        loggers.get_logger().info("e")
        said = [item.message for item in logs.ring.entries()]
        complaint = (
            "log messages cannot be queued for upload: No space left on device; they are lost until this is fixed"
        )
        assert said == ["a", "b", complaint, "c", "d", "e"]
        async with trio.open_nursery() as nursery:
            await nursery.start(sink.run)
            entries = (await sink.next()).entries
            nursery.cancel_scope.cancel()
        assert [element.message for element in entries] == [
            "a", "4 log messages were lost before they could be uploaded", "e",
        ]  # fmt: skip
    finally:
        logs.close()
        logging.getLogger().setLevel(before)


async def test_long_messages_are_cut(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    sink = OutboxSink(Outbox(tmp_path, here))
    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        sink.write(Entry(1, 0.0, 20, "rdk", "", "x" * 2_000_000, {"more": "y" * 2_000_000}, "z" * 9999 + "end"))
        (only,) = (await sink.next()).entries
        nursery.cancel_scope.cancel()
    sink.close()
    assert len(only.message) == len(only.trace) == 8192
    assert only.trace.endswith("zend")
    assert only.fields == {"cut": "this message had 4010105 bytes"}


async def test_bytes_that_are_not_text_are_kept_with_escapes(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """File names that are not UTF-8, and numbers that cannot be converted to text."""
    sink = OutboxSink(Outbox(tmp_path, here))
    odd = {"path": "/media/\udcff", "others": ["\udcfe"], "count": [10**5000], "plain": 7}
    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        assert sink.write(Entry(1, 0.0, 20, "rdk", "", "found \udcff", odd, "at \udcfe")) is None
        (only,) = (await sink.next()).entries
        nursery.cancel_scope.cancel()
    sink.close()
    assert (only.message, only.trace) == (r"found \udcff", r"at \udcfe")
    assert only.fields == {"path": r"/media/\udcff", "others": r"['\udcfe']", "count": "<list>", "plain": "7"}


async def test_no_batch_is_larger_than_a_slow_line_carries(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    sink = OutboxSink(Outbox(tmp_path, here))
    passed: list[list[str]] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        for number in range(20):
            sink.write(Entry(number, 0.0, 20, "rdk", "", str(number), trace="x" * 30_000))
        while sum(map(len, passed)) < 20:
            batch = await sink.next(500)
            assert batch == await sink.next(500)
            assert 0 < batch.size <= MAX_UPLOAD
            passed.append([item.message for item in batch.entries])
            sink.acknowledge(batch.last)
        nursery.cancel_scope.cancel()
    sink.close()
    assert [len(element) for element in passed] == [8, 8, 4]
    assert [result for some in passed for result in some] == [str(number) for number in range(20)]


async def test_a_record_that_is_not_a_message_does_not_stop_the_others(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    outbox = Outbox(tmp_path, here)
    outbox.append(b"{}")
    outbox.append(b'"\xff"')
    sink = OutboxSink(outbox)
    sink.write(entry("a"))
    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        first, second, third = (await sink.next()).entries
        nursery.cancel_scope.cancel()
    sink.close()
    assert (first.message, first.fields) == ("a queued log message cannot be decoded", {"number": 1})
    assert (second.message, second.fields) == ("a queued log message cannot be decoded", {"number": 2})
    assert third == entry("a")

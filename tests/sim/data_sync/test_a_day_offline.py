"""A machine that is offline for a day uploads everything once and in order, and reports what it dropped."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from trio.testing import MockClock

from rpc.api.convert import values
from runtime.parts.data.files import retention, store
from runtime.parts.data.files.read import capture_files, read_capture_file
from telemetry.logs.entry import INFO, Entry
from telemetry.logs.outbox_sink import OutboxSink
from telemetry.outbox.queue import Outbox
from tests.unit.runtime.parts.data import machines
from tests.unit.runtime.parts.data.clouds import FakeCloud, Upload
from tests.unit.runtime.parts.data.machines import Counting, machine, sensor, status
from uplink.log_upload import upload_logs

T = TypeVar("T")
DAY = 86_400.0


@pytest.fixture(autouse=True)
def no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip syncing to the disk: a day has tens of thousands of syncs, and only a power cut would show a difference."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)


class Network:
    """A connection that fails while `away` is set and loses a share `shaky` of requests and answers."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.away = False
        self.shaky = 0.0

    async def before(self, upload: Upload) -> None:
        await trio.sleep(0.01)
        if self.away or self.chance.random() < self.shaky:
            raise GRPCError(Status.UNAVAILABLE, "offline")

    after = before


def gaps(result: list[int]) -> int:
    return sum(after - before - 1 for before, after in pairwise(result))


async def test_a_day_of_readings(autojump_clock: MockClock, tmp_path: Path) -> None:
    cloud, network = FakeCloud(), Network(1)
    cloud.before, cloud.after = network.before, network.after
    async with machine(tmp_path, sensor(0.05), cloud=cloud, maximum_num_sync_threads=1) as memory:
        network.shaky = 0.3
        await trio.sleep(600)
        network.away = True
        await trio.sleep(DAY)
        result = await status(memory)
        assert result["sync"]["problem"] == "offline"
        network.away = False
        await trio.sleep(3600)
        network.shaky = 0.0
        await trio.sleep(120)
        result = await status(memory)
        assert (result["sync"]["problem"], result["sync"]["put_aside"], result["deleted"]["files"]) == ("", 0, 0)
    assert len(Counting.returned) >= 4_500
    there = machines.numbers(tmp_path)
    assert cloud.numbers() + there == list(range(len(Counting.returned)))
    assert len(there) <= 5, "only what came since the last round"
    assert len(cloud.calls) > len(cloud.kept), "some answers were lost: the cloud knew them again"


async def test_a_day_offline_with_a_small_disk(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reading is in the cloud or counted as deleted, although the disk holds only part of a day."""
    limit = 12_000

    def disk(folder: Path) -> tuple[int, int]:
        return limit, sum(path.stat().st_size for path in capture_files(folder))

    lost: list[int] = []
    unlink = Path.unlink

    def noted(self: Path, missing_ok: bool = False) -> None:
        if self.suffix == ".capture" and deleting:
            lost.extend(
                int(values.read_struct(reading.struct)["readings"]["number"])
                for reading in read_capture_file(self).readings
            )
        unlink(self, missing_ok=missing_ok)

    deleting: list[bool] = []
    make_room = retention.make_room

    def room(folder: Path, limits: retention.Limits, measure: object, held: set[Path]) -> retention.Deleted:
        deleting.append(True)
        try:
            return make_room(folder, limits, disk, held)
        finally:
            deleting.clear()

    monkeypatch.setattr(store, "make_room", room)
    monkeypatch.setattr(Path, "unlink", noted)
    cloud, network = FakeCloud(), Network(3)
    cloud.before, cloud.after = network.before, network.after
    network.away = True
    expected = {"maximum_capture_file_size_bytes": 2_000, "maximum_num_sync_threads": 1}
    async with machine(tmp_path, sensor(0.05), cloud=cloud, **expected) as memory:
        await trio.sleep(DAY)
        network.away, network.shaky = False, 0.2
        await trio.sleep(7200)
        network.shaky = 0.0
        await trio.sleep(200)
        result = await status(memory)
        assert result["deleted"]["files"] > 10
        assert result["sync"]["problem"] == ""
    arrived = [*cloud.numbers(), *machines.numbers(tmp_path)]
    assert arrived == sorted(set(arrived)), "in order, nothing twice"
    assert sorted([*arrived, *lost]) == list(range(len(Counting.returned))), "every reading came or was dropped"
    assert gaps(arrived) + arrived[0] == len(lost)
    of_a_file = len(lost) / result["deleted"]["files"]
    assert of_a_file == pytest.approx(2_000 / (result["deleted"]["bytes"] / len(lost)), rel=0.1), "counted as they were"


# ---- logs


async def here(function: Callable[[], T]) -> T:
    await trio.lowlevel.checkpoint()
    return function()


@pytest.mark.parametrize("max_bytes", [16 * 1024 * 1024, 200_000])
async def test_a_day_of_logs(autojump_clock: MockClock, tmp_path: Path, max_bytes: int) -> None:
    """Every message arrives in order or is counted as lost in its place, and a repeated upload is identical."""
    cloud, network = FakeCloud(), Network(5)
    cloud.before, cloud.after = network.before, network.after
    sink = OutboxSink(Outbox(tmp_path, here, max_bytes=max_bytes, segment_bytes=16 * 1024))
    written = 0

    async def write(seconds: float) -> None:
        nonlocal written
        end = trio.current_time() + seconds
        while trio.current_time() < end:
            written += 1
            sink.write(Entry(written, 1.7e9 + trio.current_time(), INFO, "rdk", "a.py:1", f"message {written}", {}))
            await trio.sleep(20)

    async with trio.open_nursery() as nursery:
        await nursery.start(sink.run)
        nursery.start_soon(upload_logs, sink, cloud)
        network.shaky = 0.3
        await write(600)
        network.away = True
        await write(DAY)
        network.away = False
        await write(3600)
        network.shaky = 0.0
        await write(300)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    sink.close()
    seen: list[str] = []
    keys = set()
    for entry in cloud.logs:
        key = entry.SerializeToString(deterministic=True)
        if key not in keys:  # cloud.domain.machines.logs removes duplicates in the same way
            keys.add(key)
            seen.append(entry.message)
    numbers, lost = [], 0
    for text in seen:
        if text.startswith("message"):
            numbers.append(int(text.split()[1]))
        else:
            lost += int(text.split()[0])
    assert numbers == sorted(set(numbers)), "in order, nothing twice"
    assert len(numbers) + lost == written
    assert numbers[-1] == written
    assert (lost > 1000) == (max_bytes < 1_000_000)

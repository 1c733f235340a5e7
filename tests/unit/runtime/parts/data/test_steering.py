"""Sensors that control the data manager, and disks that hang."""

from __future__ import annotations

import errno
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
import structlog
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from engine.components.sensing.sensor import Sensor
from engine.resource import Extra, Value
from runtime.parts.data.capture.collector import CLOSE_LIMIT
from runtime.parts.data.files import backlog as backlogs
from runtime.parts.data.files.backlog import Backlog
from runtime.parts.data.files.disk import InlineDisk, ThreadDisk
from runtime.parts.data.files.encode import CaptureRecord
from runtime.parts.data.files.health import DiskHealth, unusable
from runtime.parts.data.files.messages import CaptureSource
from runtime.parts.data.files.read import capture_files
from runtime.parts.data.files.recover import recover
from runtime.parts.data.files.store import Store
from runtime.parts.data.files.writer import RETRY_INTERVAL, WRITE_INTERVAL, FileLayout, Writer
from runtime.parts.data.gate import OPEN, UploadGate, answered
from runtime.parts.data.manager import NO_CLOUD
from tests.unit.runtime.parts.data import machines
from tests.unit.runtime.parts.data.machines import Counting, contents, document, machine, numbers, sensor, status

T = TypeVar("T")
LOG = structlog.stdlib.get_logger("test")


# ---- the gate


@pytest.mark.parametrize(
    ("readings", "is_open", "words"),
    [
        ({"should_sync": True}, True, "is true"),
        ({"should_sync": False}, False, "is false"),
        ({"should_sync": 1.0}, False, "1.0, neither"),
        ({"should_sync": "true"}, False, "'true', neither"),
        ({}, False, "no reading 'should_sync'"),
    ],
)
def test_only_true_opens_the_gate(readings: dict[str, Any], is_open: bool, words: str) -> None:
    gate = answered("s", readings)
    assert gate.is_open is is_open
    assert words in gate.reason


class Saying(Sensor):
    """Return `says` after `slow` seconds."""

    says: ClassVar[Any] = {}
    slow: ClassVar[float] = 0.0

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        await trio.sleep(self.slow)
        if isinstance(self.says, Exception):
            raise self.says
        result: Mapping[str, Value] = self.says
        return result


@pytest.fixture
def saying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the model `saying` to the machines of these tests."""
    with_it = machines.registry

    def registry() -> Any:
        result = with_it()
        result._paths[("rdk:component:sensor", "rdk:builtin:saying")] = f"{__name__}:Saying"
        return result

    monkeypatch.setattr(machines, "registry", registry)
    Saying.says, Saying.slow = {}, 0.0


SAYING = {"name": "trigger", "api": "rdk:component:sensor", "model": "saying"}


@pytest.mark.usefixtures("saying")
async def test_data_may_leave_while_the_sensor_says_so(autojump_clock: MockClock, tmp_path: Path) -> None:
    Saying.says = {"should_sync": False}

    def closed() -> int:
        return sum(content.path.suffix == ".capture" for content in contents(tmp_path))

    async with machine(tmp_path, sensor(10), SAYING, selective_syncer_name="trigger") as memory:
        await trio.sleep(20)
        assert (await status(memory))["sync_gate"] == {
            "open": False,
            "reason": "should_sync of the sensor rdk:component:sensor/trigger is false",
        }
        assert closed() == 0
        Saying.says = {"should_sync": True}
        await trio.sleep(6.5)
        assert (await status(memory))["sync_gate"]["open"] is True
        assert closed() == 1, "what was captured so far can be taken"
        await trio.sleep(30)
        assert closed() == 1, "once, not at each interval"
        Saying.says = ValueError("broken")
        await trio.sleep(6.5)
        gate = (await status(memory))["sync_gate"]
        assert (gate["open"], "broken" in gate["reason"]) == (False, True)
        Saying.says, Saying.slow = {"should_sync": True}, 5.5
        await trio.sleep(20)
        assert "no answer within 5 s" in (await status(memory))["sync_gate"]["reason"]
        Saying.slow = 0.0
        await trio.sleep(10)
        assert (await status(memory))["sync_gate"]["open"] is True
        memory.write(document(tmp_path, sensor(10), selective_syncer_name="trigger"))
        await trio.sleep(1)
        gate = (await status(memory))["sync_gate"]
        assert (gate["open"], gate["reason"]) == (False, "the sensor rdk:component:sensor/trigger is not ready")
    assert numbers(tmp_path) == list(range(len(Counting.returned)))


@pytest.mark.usefixtures("saying")
async def test_disabled_sync_asks_no_sensor(autojump_clock: MockClock, tmp_path: Path) -> None:
    Saying.says = ValueError("not read")
    async with machine(tmp_path, SAYING, selective_syncer_name="trigger", sync_disabled=True) as memory:
        await trio.sleep(20)
        result = await status(memory)
        assert result["sync_gate"] == {"open": False, "reason": "sync_disabled is set"}
        assert result["sync"] == NO_CLOUD
        assert "internal/capture-sync" not in memory.graph.snapshot().nodes


async def test_without_a_sensor_nothing_is_in_the_way(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path) as memory:
        assert (await status(memory))["sync_gate"] == {"open": True, "reason": ""}
    assert UploadGate(True, "") == OPEN


@pytest.mark.usefixtures("saying")
async def test_a_control_sensor_that_hangs_counts_as_silent(autojump_clock: MockClock, tmp_path: Path) -> None:
    Saying.says = {"o": [{"resource_name": "s", "method": "Readings", "capture_frequency_hz": 0}]}
    async with machine(tmp_path, sensor(1), SAYING, capture_control_sensor={"name": "trigger", "key": "o"}):
        await trio.sleep(5)
        before = len(Counting.returned)
        Saying.slow = 1e9
        await trio.sleep(15)
        assert len(Counting.returned) - before >= 8


async def test_a_resource_without_readings_controls_nothing(autojump_clock: MockClock, tmp_path: Path) -> None:
    motor = {"name": "m", "api": "rdk:component:motor", "model": "fake"}
    control = {"capture_control_sensor": {"name": "m", "key": "o"}}
    async with machine(tmp_path, sensor(1), motor, selective_syncer_name="m", **control) as memory:
        await trio.sleep(10)
        assert "rdk:component:motor/m has no readings: name a sensor" in (await status(memory))["sync_gate"]["reason"]
    assert numbers(tmp_path)


async def test_wrong_attributes_stop_the_data_manager_alone(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, sensor(1), capture_control_sensor={"name": 5}, sync_interval_mins=-1) as memory:
        await trio.sleep(5)
        assert "services.0.attributes" in memory.graph.snapshot().nodes["rdk:service:data_manager/data"].reason
        assert memory.machine.roster.find("s").is_open
        memory.write(document(tmp_path, sensor(1)))
        await trio.sleep(5)
        assert memory.machine.roster.find("data").is_open
    assert numbers(tmp_path)


# ---- the backlog


def record(size: int = 1) -> CaptureRecord:
    return CaptureRecord(b"x" * size)


async def test_a_full_backlog_makes_the_resource_wait(autojump_clock: MockClock) -> None:
    backlog = Backlog(3)
    added: list[int] = []

    async def add() -> None:
        for number in range(5):
            await backlog.put(record())
            added.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        await wait_all_tasks_blocked()
        assert added == [0, 1, 2]
        assert len(backlog.take()) == 3
        await wait_all_tasks_blocked()
        assert added == [0, 1, 2, 3, 4]
    assert len(backlog.take()) == 2
    assert backlog.take() == []


async def test_bytes_count_too_but_one_large_reading_always_fits(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlogs, "LARGEST", 100)
    backlog = Backlog(1000)
    await backlog.put(record(500))
    with trio.move_on_after(1) as scope:
        await backlog.put(record(1))
    assert scope.cancelled_caught
    assert len(backlog.take()) == 1, "the one that waited was cancelled and is not there"
    await backlog.put(record(60))
    with trio.fail_after(1):
        await backlog.pressing()


async def test_waiters_are_woken(autojump_clock: MockClock) -> None:
    backlog = Backlog(10)
    for wake in (backlog.nudge, backlog.close):
        with trio.move_on_after(1) as scope:
            await backlog.wait()
        assert scope.cancelled_caught
        wake()
        await backlog.wait()
        await backlog.pressing()
        backlog.take()
    await backlog.wait()
    assert backlog.closed


# ---- the writer, with disks of all kinds


class Hanging(InlineDisk):
    """A disk that never answers once `hangs` is set."""

    hangs = False

    async def run(self, function: Callable[[], T]) -> T:
        if self.hangs:
            await trio.sleep_forever()
        return await super().run(function)

    def post(self, function: Callable[[], object]) -> None:
        """Do nothing."""


class Listening:
    """Record reports of trouble."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def refused(self, who: object, error: OSError) -> None:
        self.heard.append(error.strerror or "")

    def accepted(self, who: object) -> None:
        self.heard.append("")


def header(mime_type: str) -> bytes:
    return CaptureSource("rdk:component:sensor", "s", "Readings").header(mime_type)


@asynccontextmanager
async def writing(folder: Path, disk: Any, **place: Any) -> AsyncIterator[Writer]:
    writer = Writer(FileLayout(folder, header, False, 10_000, **place), disk, Listening(), LOG, queue=100)
    async with disk.opened(), trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)
        yield writer
        writer.close()


def endings(folder: Path) -> list[str]:
    return [path.suffix for path in capture_files(folder)]


def real(number: int) -> CaptureRecord:
    from tests.unit.runtime.parts.data.test_files import reading

    return CaptureRecord(reading(number))


async def test_writes_are_gathered(autojump_clock: MockClock, tmp_path: Path) -> None:
    writes: list[float] = []

    class Noting(InlineDisk):
        async def run(self, function: Callable[[], T]) -> T:
            writes.append(trio.current_time())
            return await super().run(function)

    async with writing(tmp_path, Noting()) as writer:
        for number in range(100):
            await writer.backlog.put(real(number))
            await trio.sleep(0.01)
        assert writer.counters.written >= 94
    assert len(writes) < 30
    gaps = [later - earlier for earlier, later in itertools.pairwise(writes[:-2])]
    assert min(gaps) >= WRITE_INTERVAL - 1e-9


async def test_a_burst_does_not_wait_for_the_next_write(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with writing(tmp_path, InlineDisk()) as writer:
        begin = trio.current_time()
        for number in range(2000):
            await writer.backlog.put(real(number))
        assert trio.current_time() - begin < WRITE_INTERVAL
    assert sum(len(content.readings) for content in contents(tmp_path)) == 2000


async def test_flush_returns_when_files_are_closed(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with writing(tmp_path, InlineDisk()) as writer:
        for round_ in range(3):
            await writer.backlog.put(real(round_))
            await writer.flush()
            assert endings(tmp_path).count(".capture") == round_ + 1
            assert writer.counters.committed == round_ + 1
    await writer.flush()
    assert writer.done.is_set(), "after the end there is nothing to wait for"


async def test_flush_ends_when_the_writer_does(autojump_clock: MockClock, tmp_path: Path) -> None:
    disk = Hanging()
    writer = Writer(FileLayout(tmp_path, header, False, 10_000), disk, Listening(), LOG, queue=10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)
        await writer.backlog.put(real(0))
        disk.hangs = True
        nursery.start_soon(writer.flush)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert writer.done.is_set()


async def test_a_failing_disk_is_retried_and_reported(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble = Listening()
    times: list[float] = []

    class Refusing(InlineDisk):
        async def run(self, function: Callable[[], T]) -> T:
            times.append(trio.current_time())
            if len(times) < 4:
                raise OSError(errno.EROFS, "Read-only file system")
            return await super().run(function)

    writer = Writer(FileLayout(tmp_path, header, False, 10_000), Refusing(), trouble, LOG, queue=10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)
        await writer.backlog.put(real(0))
        await trio.sleep(10)
        writer.close()
    assert times[:4] == pytest.approx([0, RETRY_INTERVAL, 2 * RETRY_INTERVAL, 3 * RETRY_INTERVAL])
    assert trouble.heard[:4] == ["Read-only file system"] * 3 + [""]
    assert writer.counters.written == 1
    assert "Read-only" in writer.counters.last_error


async def test_a_hung_disk_holds_nothing_up_for_long(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks: list[Hanging] = []

    def hanging(name: str) -> Hanging:
        disks.append(Hanging(name))
        return disks[-1]

    monkeypatch.setattr(machines.InlineManager, "DISK", staticmethod(hanging))
    async with machine(tmp_path, sensor(10)) as memory:
        await trio.sleep(2)
        disks[0].hangs = True
        await trio.sleep(20)
        begin = trio.current_time()
        memory.write(document(tmp_path))
        async for snapshot in memory.graph.changes():
            if not any("sensor/s" in name for name in snapshot.nodes):
                break
        assert trio.current_time() - begin == pytest.approx(CLOSE_LIMIT, abs=0.5)
        disks[0].hangs = False
    assert endings(tmp_path) == [".prog"], "left to recovery"


async def test_a_thread_writes_without_holding_up_the_loop(tmp_path: Path) -> None:
    """This is the only test here with a real thread, so it does not use the virtual clock."""
    async with writing(tmp_path, ThreadDisk("test")) as writer:
        for number in range(300):
            await writer.backlog.put(real(number))
        await writer.flush()
        assert writer.counters.committed == 300
        await writer.backlog.put(real(300))
    assert sum(len(content.readings) for content in contents(tmp_path)) == 301


async def test_a_cancelled_writer_leaves_its_file_to_recovery(autojump_clock: MockClock, tmp_path: Path) -> None:
    writer = Writer(FileLayout(tmp_path, header, False, 10_000), InlineDisk(), Listening(), LOG, queue=10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)
        await writer.backlog.put(real(0))
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert endings(tmp_path) == [".prog"]
    assert recover(tmp_path).readings == 1


# ---- messages for users


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EACCES, "Permission denied", "/x/y"), "/x/y: Permission denied: allow the user of"),
        (OSError(errno.ENOSPC, "No space left on device"), "/c: No space left on device: free some space"),
        (OSError(errno.EROFS, "Read-only file system"), "mount it for writing"),
        (OSError(errno.EIO, "Input/output error"), "the disk fails"),
        (OSError(9999, "Strange"), "/c: Strange"),
    ],
)
def test_each_refusal_has_its_remedy(error: OSError, words: str) -> None:
    assert words in str(unusable(Path("/c"), error))


def test_trouble_is_over_when_it_is_over_for_all() -> None:
    said: list[str] = []
    health = DiskHealth(Path("/c"), LOG, said.append)
    first, two = object(), object()
    health.refused(first, OSError(errno.ENOSPC, "full"))
    health.refused(first, OSError(errno.ENOSPC, "full"))
    health.refused(two, OSError(errno.ENOSPC, "full"))
    health.accepted(first)
    assert len(said) == 1, "the same reason is logged once"
    assert health.reason
    health.accepted(two)
    health.accepted(two)
    assert len(said) == 2
    assert said[1] == ""


async def test_a_store_counts_what_comes_back(autojump_clock: MockClock, tmp_path: Path) -> None:
    store = Store(tmp_path / "c", InlineDisk(), LOG, largest=1000)
    await store.prepare()
    source = CaptureSource("rdk:component:sensor", "s", "Readings")
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            with store.writing("k", source, 10) as writer:
                nursery.start_soon(writer.run)
                await writer.backlog.put(real(0))
                await store.flush()
                assert store.status()["methods"]["k"]["capturing"] is True
                writer.close()
                await writer.done.wait()
    state = store.status()["methods"]["k"]
    assert (state["written"], state["capturing"]) == (2, False), "over several lives of its capture"

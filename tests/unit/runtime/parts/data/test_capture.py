"""Data capture on a machine in memory, in virtual time."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
import structlog
import trio
from structlog.testing import LogCapture
from trio.testing import MockClock

from nursery_graph import State
from runtime.parts.data.files import files
from runtime.parts.data.files.disk import InlineDisk
from runtime.parts.data.files.read import capture_files, is_being_written
from runtime.parts.data.files.store import Store
from runtime.parts.data.files.writer import COMMIT_INTERVAL, SLOW
from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import ErrorKind, MachineError
from tests.unit.runtime.parts.data.machines import (
    Counting,
    InlineManager,
    capturing,
    contents,
    document,
    fresh,
    machine,
    numbers,
    readings,
    registry,
    sensor,
    status,
)

T = TypeVar("T")


@pytest.fixture
def caplog() -> Iterator[LogCapture]:
    """Collect the log entries of structlog."""
    capture = LogCapture()
    before = structlog.get_config()
    structlog.configure(processors=[capture])
    yield capture
    structlog.configure(**before)


def store(memory: MemoryMachine) -> Store:
    manager = memory.machine.roster.find("data").resource
    assert isinstance(manager, InlineManager)
    return manager.store


def methods(result: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key.removeprefix("rdk:component:sensor/"): value for key, value in result["methods"].items()}


async def test_readings_are_in_the_published_format(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, sensor(10), tags=["bench"]) as memory:
        await trio.sleep(10.01)
        state = (await status(memory))["methods"]["rdk:component:sensor/s Readings"]
        assert state["captured"] == 100
        assert state["missed"] == 0
    assert numbers(tmp_path) == list(range(len(Counting.returned)))
    assert len(Counting.returned) >= 100
    assert all(extra == {"fromDataManagement": True} for extra in Counting.extras)
    (content,) = contents(tmp_path)
    assert content.path.parent == tmp_path / "rdk_component_sensor" / "s" / "Readings"
    assert content.path.suffix == ".capture"
    assert ":" not in content.path.name
    header = content.header
    assert (header.component_type, header.component_name, header.method_name) == (
        "rdk:component:sensor",
        "s",
        "Readings",
    )
    assert header.type == 2, "DATA_TYPE_TABULAR_SENSOR"
    assert header.file_extension == ".dat"
    assert list(header.tags) == ["bench"]


async def test_each_reading_has_its_times(autojump_clock: MockClock, tmp_path: Path) -> None:
    times = iter(range(1_000_000_000, 2_000_000_000, 1_000))
    async with machine(tmp_path) as memory:
        store(memory).clock = lambda: next(times)
        memory.write(document(tmp_path, sensor(1)))
        await trio.sleep(3.5)
    (content,) = contents(tmp_path)
    for reading in content.readings:
        metadata = reading.metadata
        assert metadata.time_requested.ToNanoseconds() + 1000 == metadata.time_received.ToNanoseconds()


async def test_a_clock_that_jumps_back_loses_nothing(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, maximum_capture_file_size_bytes=400) as memory:
        store(memory).clock = lambda: 1_700_000_000_000_000_000 - round(trio.current_time()) % 3 * 3_600_000_000_000
        memory.write(document(tmp_path, sensor(5), maximum_capture_file_size_bytes=400))
        await trio.sleep(10)
    assert sorted(numbers(tmp_path)) == list(range(len(Counting.returned)))
    assert len(list(contents(tmp_path))) > 5


# ---- never faster than the resource answers


async def test_beats_that_a_slow_resource_misses_are_counted_not_queued(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    async with machine(tmp_path, sensor(10)) as memory:
        Counting.slow = dict.fromkeys(range(5, 8), 0.95)
        await trio.sleep(10.01)
        state = methods(await status(memory))["s Readings"]
        assert state["missed"] == 8 + 9 + 8, "what is late is read at once, then by the beat again"
        assert state["captured"] + state["missed"] == 100, "each beat is one or the other"
    assert numbers(tmp_path) == list(range(len(Counting.returned)))


async def test_a_failing_method_is_counted_logged_once_and_retried(
    autojump_clock: MockClock, tmp_path: Path, caplog: LogCapture
) -> None:
    async with machine(tmp_path, sensor(10)) as memory:
        for call in range(10, 20):
            Counting.errors[call] = MachineError("the wire is loose", kind=ErrorKind.UNAVAILABLE)
        Counting.errors[20] = ValueError("a bug")
        await trio.sleep(5.01)
        state = methods(await status(memory))["s Readings"]
        assert state["failed"] == 11
        assert state["last_error"] == "ValueError('a bug')"
    messages = [entry for entry in caplog.entries if "capture" in entry]
    assert [message["event"] for message in messages] == ["capture fails", "capture fails", "capture works again"]
    assert messages[-1]["failures"] == 11
    assert numbers(tmp_path) == list(range(len(Counting.returned)))


async def test_a_driver_may_have_nothing_to_store(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, sensor(10)) as memory:
        nothing = MachineError("no capture from filter module", kind=ErrorKind.PRECONDITION)
        Counting.errors = dict.fromkeys(range(1, 31), nothing)
        Counting.errors[31] = MachineError("another precondition", kind=ErrorKind.PRECONDITION)
        await trio.sleep(5.01)
        state = methods(await status(memory))["s Readings"]
        assert (state["filtered"], state["failed"]) == (30, 1)


async def test_a_hung_resource_is_given_up(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, sensor(1)) as memory:
        Counting.slow = {3: 1e9}
        await trio.sleep(100)
        assert methods(await status(memory))["s Readings"]["waiting_for"] == "resource"
        await trio.sleep(600)
        state = methods(await status(memory))["s Readings"]
        assert state["failed"] == 1
        assert "600 s" in state["last_error"]
        assert state["missed"] >= 599
        assert state["captured"] > 50


# ---- what the graph does


async def test_capture_ends_before_its_resource_and_comes_back_with_it(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    async with machine(tmp_path, sensor(20), sensor(20, "other", model="fake")) as memory:
        seen: list[tuple[str, str]] = []
        memory.graph.subscribe(lambda item: seen.append((item.name, item.after.value)))
        await trio.sleep(1)
        changed = sensor(20) | {"attributes": {"generation": "2"}}
        memory.write(document(tmp_path, changed, sensor(20, "other", model="fake")))
        await trio.sleep(1)
        node = "internal/capture/rdk:component:sensor/s Readings"
        order = [(name, state) for name, state in seen if name in (node, "rdk:component:sensor/s")]
        assert order[0] == (node, "removing") or order[0][1] == "removing"
        ended = [index for index, first in enumerate(seen) if first[0] == "rdk:component:sensor/s"]
        assert memory.graph.snapshot().nodes[node].state is State.READY
        assert not any("other" in name for name, _ in seen), "another resource's capture never notices"
        assert ended
    assert Counting.lives == ["begins", "ends", "begins", "ends"]
    assert numbers(tmp_path) == list(range(len(Counting.returned))), "nothing is lost, nothing is there twice"
    assert all(content.path.suffix == ".capture" for content in contents(tmp_path))


async def test_changing_what_is_captured_leaves_the_resource_alone(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, sensor(20)) as memory:
        await trio.sleep(1)
        memory.write(document(tmp_path, sensor(5)))
        await trio.sleep(1)
        before = len(Counting.returned)
        await trio.sleep(2)
        assert len(Counting.returned) == before + 10
        memory.write(document(tmp_path, sensor(5, disabled=True)))
        await trio.sleep(1)
        assert not [name for name in memory.graph.snapshot().nodes if "capture" in name]
        memory.write(document(tmp_path, sensor(0)))
        await trio.sleep(1)
        assert Counting.lives == ["begins"]
    assert numbers(tmp_path) == list(range(len(Counting.returned)))


async def test_another_folder_takes_what_comes_next(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path / "a", sensor(20)) as memory:
        await trio.sleep(1)
        memory.write(document(tmp_path / "b", sensor(20)))
        await trio.sleep(1)
    both = numbers(tmp_path / "a") + numbers(tmp_path / "b")
    assert both == list(range(len(Counting.returned)))
    assert numbers(tmp_path / "b")


async def test_all_capture_may_be_switched_off(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, sensor(20), capture_disabled=True):
        await trio.sleep(5)
    assert Counting.calls == 0


async def test_a_removed_resource_ends_its_capture(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, sensor(20)) as memory:
        await trio.sleep(1)
        memory.write(document(tmp_path))
        await trio.sleep(1)
        assert not [name for name in memory.graph.snapshot().nodes if "capture" in name]
        assert all(content.path.suffix == ".capture" for content in contents(tmp_path)), "closed at once"


async def test_a_mistake_stops_one_method_and_says_where(autojump_clock: MockClock, tmp_path: Path) -> None:
    entry = sensor(10) | {"service_configs": capturing(readings(10), {"method": "Reading", "capture_frequency_hz": 1})}
    async with machine(tmp_path, entry) as memory:
        await trio.sleep(1)
        nodes = memory.graph.snapshot().nodes
        assert nodes["internal/capture/rdk:component:sensor/s Readings"].state is State.READY
        wrong = nodes["internal/capture/rdk:component:sensor/s Reading"]
        assert wrong.state is State.UNHEALTHY
        assert "components.0.service_configs.0.attributes.capture_methods.1.method" in wrong.reason
        assert "did you mean 'Readings'?" in wrong.reason
    assert numbers(tmp_path)


async def test_without_a_data_manager_the_wish_says_what_is_missing(autojump_clock: MockClock, tmp_path: Path) -> None:
    fresh()
    async with open_machine({"components": [sensor(10)]}, registry=registry()) as memory:
        await memory.machine.lifecycle.running.wait()
        node = memory.graph.snapshot().nodes["internal/capture/rdk:component:sensor/s Readings"]
        assert node.state is State.UNHEALTHY
        assert "there is no data manager" in node.reason
        assert memory.machine.roster.find("s").is_open, "the resource itself is well"


# ---- the disk


async def test_a_folder_that_cannot_be_written_to_is_waited_for(autojump_clock: MockClock, tmp_path: Path) -> None:
    in_the_way = tmp_path / "capture"
    in_the_way.write_text("a file")
    async with machine(in_the_way, sensor(10)) as memory:
        node = memory.graph.snapshot().nodes["rdk:service:data_manager/data"]
        assert node.state is State.UNHEALTHY
        assert "something on that path is a file" in node.reason
        assert memory.machine.roster.find("s").is_open
        in_the_way.unlink()
        await trio.sleep(30)
        assert memory.machine.roster.find("data").is_open
    assert numbers(in_the_way) == list(range(len(Counting.returned)))


async def test_a_full_disk_stops_capture_and_loses_nothing_that_was_taken(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with machine(tmp_path, sensor(20, capture_queue_size=30)) as memory:
        await trio.sleep(2)

        def full(fd: int, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(files.os, "write", full)
        await trio.sleep(20)
        node = memory.graph.snapshot().nodes["rdk:service:data_manager/data"]
        assert node.state is State.UNHEALTHY
        assert "No space left on device: free some space" in node.reason
        taken = len(Counting.returned)
        await trio.sleep(20)
        assert len(Counting.returned) == taken, "it waits instead of filling memory"
        assert methods(await status(memory))["s Readings"]["waiting_for"] == "disk"
        monkeypatch.undo()
        await trio.sleep(2)
        assert methods(await status(memory))["s Readings"]["missed"] > 700
        assert memory.graph.snapshot().nodes["rdk:service:data_manager/data"].state is State.READY
        assert (await status(memory))["problem"] == ""
    assert numbers(tmp_path) == list(range(len(Counting.returned)))


async def test_a_disk_that_confirms_nothing_is_believed_only_when_it_does(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: LogCapture
) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async with machine(tmp_path, sensor(20, capture_queue_size=30)) as memory:
        await trio.sleep(2)
        monkeypatch.setattr(files.os, "fsync", fail)
        monkeypatch.setattr(files, "sync_data", fail)
        await trio.sleep(60)
        assert "Input/output error: the disk fails" in (await status(memory))["problem"]
        assert methods(await status(memory))["s Readings"]["waiting_for"] == "disk"
        assert [path.suffix for path in capture_files(tmp_path)] == [".prog"], "one file is in doubt, not one a second"
        monkeypatch.undo()
        await trio.sleep(2)
        result = await status(memory)
        assert (result["problem"], result["recovered"]["files"]) == ("", 1)
        assert result["recovered"]["readings"] >= 90
    said = [entry["event"] for entry in caplog.entries if "disk" in entry["event"]]
    assert said == [
        "capture waits for the disk",
        "the disk accepts captured data again",
        "recovered files that were open when machine-server ended or the disk failed",
    ]
    assert sorted(numbers(tmp_path)) == list(range(len(Counting.returned)))


async def test_a_disk_that_becomes_read_only_is_released(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    async with machine(tmp_path, sensor(20)) as memory:
        await trio.sleep(2)
        for name in ("write", "ftruncate"):
            monkeypatch.setattr(files.os, name, refuse)
        await trio.sleep(2)
        assert "mount it for writing" in (await status(memory))["problem"]
        (path,) = capture_files(tmp_path)
        assert not is_being_written(path), "it can be unmounted"
        monkeypatch.undo()
        await trio.sleep(2)
        assert (await status(memory))["problem"] == ""
    assert sorted(numbers(tmp_path)) == list(range(len(Counting.returned)))


class StandingStill(InlineDisk):
    """Answer only while `goes_on` is set."""

    goes_on = trio.Event()

    async def run(self, function: Callable[[], T]) -> T:
        await self.goes_on.wait()
        return await super().run(function)


async def test_a_disk_that_does_not_answer_is_reported(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InlineManager, "DISK", StandingStill)
    StandingStill.goes_on.set()
    async with machine(tmp_path, sensor(20)) as memory:
        await trio.sleep(2)
        StandingStill.goes_on = trio.Event()
        await trio.sleep(SLOW + 1)
        assert "the disk has not answered for 10 s: wait, or read" in (await status(memory))["problem"]
        StandingStill.goes_on.set()
        await trio.sleep(1)
        assert (await status(memory))["problem"] == ""
    assert numbers(tmp_path) == list(range(len(Counting.returned)))


async def test_readings_lost_to_a_full_disk_are_counted(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: LogCapture
) -> None:
    async with machine(tmp_path, sensor(20, capture_queue_size=10)) as memory:
        await trio.sleep(1.001)
        before = len(Counting.returned)

        def full(fd: int, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(files.os, "write", full)
        await trio.sleep(5)
        memory.write(document(tmp_path))
        await trio.sleep(1)
        monkeypatch.undo()
        lost = sum(entry["readings"] for entry in caplog.entries if "lost" in entry["event"])
        assert 0 < lost <= 20, "what was in hand and what waited"
        assert len(numbers(tmp_path)) + lost in (len(Counting.returned), len(Counting.returned) - 1)
        assert len(numbers(tmp_path)) >= before - 1


async def test_a_reading_is_on_the_disk_within_the_commit_interval(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[float] = []
    real = files.sync_data
    monkeypatch.setattr(files, "sync_data", lambda fd: (commits.append(trio.current_time()), real(fd))[1])
    async with machine(tmp_path, sensor(1)) as memory:
        await trio.sleep(60)
        state = methods(await status(memory))["s Readings"]
        assert state["written"] - state["committed"] <= COMMIT_INTERVAL
    gaps = [later - earlier for earlier, later in itertools.pairwise(commits)]
    assert gaps
    assert max(gaps) <= COMMIT_INTERVAL + 1
    assert min(gaps) >= COMMIT_INTERVAL, "and not more often"


async def test_left_behind_files_are_closed_at_the_start(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, sensor(10)):
        await trio.sleep(2)
    (content,) = contents(tmp_path)
    content.path.rename(content.path.with_suffix(".prog"))
    data = content.path.with_suffix(".prog").read_bytes()
    content.path.with_suffix(".prog").write_bytes(data[:-3])
    whole = len(content.readings) - 1
    async with machine(tmp_path) as memory:
        recovered = (await status(memory))["recovered"]
        assert (recovered["files"], recovered["readings"]) == (1, whole)
    assert numbers(tmp_path) == list(range(whole))


async def test_old_files_go_when_the_disk_is_full(
    autojump_clock: MockClock, tmp_path: Path, caplog: LogCapture
) -> None:
    attributes = {"maximum_capture_file_size_bytes": 400, "disk_usage_deletion_threshold": 0.0}
    async with machine(tmp_path, sensor(10), capture_dir_deletion_threshold=0.0, **attributes) as memory:
        await trio.sleep(29)
        there = sum(content.path.suffix == ".capture" for content in contents(tmp_path))
        await trio.sleep(2)
        gone = (await status(memory))["deleted"]
        assert gone["files"] in (-(-there // 5), -(-(there + 1) // 5))
        assert gone["bytes"] > 100 * gone["files"]
    (entry,) = [item for item in caplog.entries if "nearly full" in item["event"]]
    assert entry["files"] == gone["files"]


async def test_a_disk_that_refuses_is_looked_at_at_once(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes = {"maximum_capture_file_size_bytes": 400, "disk_usage_deletion_threshold": 0.0}
    async with machine(tmp_path, sensor(10), capture_dir_deletion_threshold=0.0, **attributes) as memory:
        await trio.sleep(10)
        assert (await status(memory))["deleted"]["files"] == 0

        def full(fd: int, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(files.os, "write", full)
        await trio.sleep(2)
        assert (await status(memory))["deleted"]["files"] > 0
        monkeypatch.undo()


# ---- the cloud that is not there


async def test_sync_closes_files_and_says_that_nothing_is_lost(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, sensor(10)) as memory:
        await trio.sleep(2.03)
        with pytest.raises(MachineError, match=r"no cloud.*in closed files") as caught:
            await memory.client().call("rdk:service:data_manager", "data", "sync")
        assert caught.value.kind is ErrorKind.PRECONDITION
        closed = [content for content in contents(tmp_path) if content.path.suffix == ".capture"]
        assert sum(len(content.readings) for content in closed) == len(Counting.returned)
        await trio.sleep(2)
    assert numbers(tmp_path) == list(range(len(Counting.returned)))


async def test_an_upload_is_refused_clearly(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path) as memory:
        with pytest.raises(MachineError, match="the 3 bytes were neither uploaded nor stored") as caught:
            await memory.client().call(
                "rdk:service:data_manager",
                "data",
                "upload_binary_data_to_datasets",
                binary_data=b"abc",
                dataset_ids=["d"],
                mime_type="image_png",
            )
        assert caught.value.kind is ErrorKind.PRECONDITION

"""A whole machine in memory whose data manager has a cloud."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
from grpclib.const import Status
from trio.testing import MockClock

from engine.components.sensing.sensor import Sensor
from engine.resource import Extra, Value
from engine.services.data_manager import MimeType
from nursery_graph import State
from runtime.parts.data.files.store import CHECK_INTERVAL
from runtime.parts.data.sync.upload import UNARY
from schema.errors import ErrorKind, MachineError
from tests.unit.runtime.parts.data import machines
from tests.unit.runtime.parts.data.clouds import FakeCloud, failing, left
from tests.unit.runtime.parts.data.machines import Counting, document, machine, numbers, sensor, status

MANAGER = "rdk:service:data_manager"
NODE = "internal/data-sync"


async def test_captured_data_arrives(autojump_clock: MockClock, tmp_path: Path) -> None:
    cloud = FakeCloud()
    async with machine(tmp_path, sensor(10), cloud=cloud, tags=["trial"]) as memory:
        await trio.sleep(33.05)
        assert len(cloud.numbers()) >= 10 * 24 - 1, "each 6 s, by default"
        sync = (await status(memory))["sync"]
        assert sync["uploaded"]["readings"] == len(cloud.numbers())
        assert (sync["problem"], sync["last_error"], sync["put_aside"]) == ("", "", 0)
        assert list(cloud.kept[0].metadata.tags) == ["trial"]
    there = numbers(tmp_path)
    assert cloud.numbers() + there == list(range(len(Counting.returned))), "the rest is in files for the next start"
    async with machine(tmp_path, cloud=cloud):
        await trio.sleep(1)
    assert cloud.numbers()[-len(there) :] == there
    assert left(tmp_path) == []


async def test_while_the_cloud_is_away_files_grow_and_nothing_is_closed_for_it(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    cloud = FakeCloud()
    cloud.before = failing(Status.UNAVAILABLE)
    async with machine(tmp_path, sensor(1), cloud=cloud) as memory:
        await trio.sleep(3600)
        files = len(left(tmp_path))
        assert files < 10, "and not 600"
        assert (await status(memory))["sync"]["waiting_files"] == files - 1
        assert memory.graph.snapshot().nodes[NODE].state is State.READY
        cloud.before = failing(Status.UNAVAILABLE, when=lambda upload: False)
        await trio.sleep(67)
        assert len(cloud.numbers()) > 3_600
    assert cloud.numbers() + numbers(tmp_path) == list(range(len(Counting.returned)))


async def test_the_push_channel_that_is_back_ends_the_wait(autojump_clock: MockClock, tmp_path: Path) -> None:
    cloud = FakeCloud()
    cloud.before = failing(Status.UNAVAILABLE, message="offline")
    async with machine(tmp_path, sensor(1), cloud=cloud) as memory:
        await trio.sleep(600)
        assert (await status(memory))["sync"]["problem"] == "offline"
        cloud.before = failing(Status.UNAVAILABLE, when=lambda item: False)
        cloud.contact.mark_reached()
        await trio.testing.wait_all_tasks_blocked()
        assert (await status(memory))["sync"]["problem"] == ""
        assert len(cloud.numbers()) > 0


async def test_sync_of_the_service_returns_when_the_cloud_has_it(autojump_clock: MockClock, tmp_path: Path) -> None:
    cloud = FakeCloud()
    async with machine(tmp_path, sensor(10), cloud=cloud, sync_interval_mins=60) as memory:
        await trio.sleep(10.05)
        assert len(cloud.calls) <= 1, "the first round comes at the start"
        await memory.client().call(MANAGER, "data", "sync")
        assert cloud.numbers() == list(range(len(Counting.returned)))
        cloud.before = failing(Status.UNAVAILABLE, message="offline")
        await trio.sleep(1)
        with pytest.raises(MachineError, match=r"wait for the cloud: offline.*nothing is lost") as caught:
            await memory.client().call(MANAGER, "data", "sync")
        assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_sync_disabled_leaves_it_to_the_call(autojump_clock: MockClock, tmp_path: Path) -> None:
    cloud = FakeCloud()
    async with machine(tmp_path, sensor(10), cloud=cloud, sync_disabled=True) as memory:
        await trio.sleep(100.05)
        assert cloud.calls == []
        assert (await status(memory))["sync_gate"] == {"open": False, "reason": "sync_disabled is set"}
        await memory.client().call(MANAGER, "data", "sync")
        assert cloud.numbers() == list(range(len(Counting.returned)))


class Deciding(Sensor):
    """Report whether data may be uploaded."""

    says: ClassVar[bool] = False

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        return {"should_sync": self.says}


async def test_a_sensor_decides(autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = machines.registry

    def with_it() -> Any:
        result = registry()
        result._paths[("rdk:component:sensor", "rdk:builtin:deciding")] = f"{__name__}:Deciding"
        return result

    monkeypatch.setattr(machines, "registry", with_it)
    monkeypatch.setattr(Deciding, "says", False)
    cloud = FakeCloud()
    decider = {"name": "d", "api": "rdk:component:sensor", "model": "deciding"}
    async with machine(tmp_path, sensor(10), decider, cloud=cloud, selective_syncer_name="d"):
        await trio.sleep(60)
        assert cloud.calls == []
        monkeypatch.setattr(Deciding, "says", True)
        await trio.sleep(6.1)
        assert len(cloud.numbers()) >= 600, "at once when it may, not an interval later"
        monkeypatch.setattr(Deciding, "says", False)
        await trio.sleep(7)
        before = len(cloud.calls)
        await trio.sleep(60)
        assert len(cloud.calls) == before


async def test_another_configuration_interrupts_nothing_that_was_acknowledged(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    cloud = FakeCloud()

    async def slowly(upload: Any) -> None:
        await trio.sleep(0.7)

    cloud.before = cloud.after = slowly
    async with machine(tmp_path, sensor(10), cloud=cloud) as memory:
        for interval in (0.05, 0.02, 0.01, 0.03):
            await trio.sleep(7.3)
            memory.write(document(tmp_path, sensor(10), sync_interval_mins=interval))
        await trio.sleep(10)
    assert cloud.numbers() + numbers(tmp_path) == list(range(len(Counting.returned)))


async def test_problems_that_need_a_person_make_the_node_unhealthy(autojump_clock: MockClock, tmp_path: Path) -> None:
    cloud = FakeCloud()
    cloud.before = failing(Status.PERMISSION_DENIED, message="this key may not")
    async with machine(tmp_path, sensor(10), cloud=cloud) as memory:
        await trio.sleep(15)
        node = memory.graph.snapshot().nodes[NODE]
        assert node.state is State.UNHEALTHY
        assert "this key may not" in node.reason
        cloud.before = failing(Status.PERMISSION_DENIED, when=lambda upload: False)
        await trio.sleep(60)
        assert memory.graph.snapshot().nodes[NODE].state is State.READY


async def test_a_machine_that_starts_on_a_full_disk_uploads_what_is_there(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise nothing would ever free space on the disk."""
    async with machine(tmp_path, sensor(10, "a"), sensor(10, "b")):
        await trio.sleep(5)
    there = numbers(tmp_path)
    closed, killed = (tmp_path / item for item in left(tmp_path))
    killed = killed.rename(killed.with_suffix(".prog"))
    cloud = FakeCloud()

    def full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("runtime.parts.data.files.store.probe", full)
    async with machine(tmp_path, cloud=cloud) as memory:

        def node() -> tuple[State, str]:
            (single,) = (first for name, first in memory.graph.snapshot().nodes.items() if name.startswith(MANAGER))
            return single.state, single.reason

        await trio.sleep(10)
        assert not closed.exists()
        assert killed.exists()
        assert 0 < len(cloud.numbers()) < len(there)
        assert node()[0] is State.UNHEALTHY
        assert "No space left on device: free some space" in node()[1]
        monkeypatch.undo()
        await trio.sleep(CHECK_INTERVAL + 7)
        assert node() == (State.READY, "")
        assert (await status(memory))["recovered"]["files"] == 1
    assert sorted(cloud.numbers()) == sorted(there)
    assert left(tmp_path) == []


@pytest.mark.parametrize("size", [0, 3, UNARY + 1])
async def test_bytes_are_uploaded_to_datasets(autojump_clock: MockClock, tmp_path: Path, size: int) -> None:
    cloud = FakeCloud()
    async with machine(tmp_path, cloud=cloud) as memory:
        await memory.client().call(
            MANAGER,
            "data",
            "upload_binary_data_to_datasets",
            binary_data=b"\x07" * size,
            tags=["a"],
            dataset_ids=["d1", "d2"],
            mime_type=MimeType.IMAGE_PNG,
        )
    (upload,) = cloud.kept
    metadata = upload.metadata
    assert (list(metadata.tags), list(metadata.dataset_ids)) == (["a"], ["d1", "d2"])
    assert (metadata.mime_type, metadata.file_extension, metadata.type) == ("image/png", ".png", 1)
    assert (upload.data or upload.contents[0].binary) == b"\x07" * size
    assert upload.contents[0].metadata.HasField("time_requested")


async def test_bytes_that_cannot_be_uploaded(autojump_clock: MockClock, tmp_path: Path) -> None:
    cloud = FakeCloud()
    cloud.before = failing(Status.NOT_FOUND, message="there is no dataset d1")
    async with machine(tmp_path, cloud=cloud) as memory:
        with pytest.raises(MachineError, match="there is no dataset d1") as caught:
            await memory.client().call(
                MANAGER, "data", "upload_binary_data_to_datasets", binary_data=b"x", dataset_ids=["d1"]
            )
        assert caught.value.kind is ErrorKind.NOT_FOUND

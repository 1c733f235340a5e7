"""What a machine sends to the cloud while a user watches it: nothing before and after, and at a limited rate."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.components.sensing.sensor import Sensor
from engine.registry import Registry
from engine.resource import Extra
from engine.views.readings import SensorReading
from runtime.parts.cloud.live import MAX_SENSORS, MAX_SNAPSHOT, MAX_TEXT, PERIOD, bounded, send_snapshots, snapshot
from runtime.server.memory import MemoryMachine, open_machine
from runtime.server.pages.view import MachineSource
from schema.names import Model
from uplink.watch import LONGEST, Watch

SENSOR = "rdk:component:sensor"
SECRET = "hunter2-hunter2"
asked: dict[str, int] = {}


class Counting(Sensor):
    """Return the number of requests; `slow` never answers, `leaky` includes a secret."""

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        name = self.name.short
        asked[name] = asked.get(name, 0) + 1
        if name == "slow":
            await trio.sleep_forever()
        if name == "leaky":
            return {"note": f"the key is {SECRET}"}
        return {"count": asked[name]}


@pytest.fixture(autouse=True)
def _nothing_asked() -> None:
    asked.clear()


def registry() -> Registry:
    result = Registry({})
    result.add(Counting.API, Model.parse("counting"), Counting)
    return result


def document(*names: str, **more: Any) -> dict[str, Any]:
    return {"components": [{"name": name, "api": SENSOR, "model": "counting", **more} for name in names]}


class Cloud:
    """The cloud: it records what was sent, and when."""

    def __init__(self, memory: MemoryMachine) -> None:
        self.memory = memory
        self.watch = Watch()
        self.sent: list[tuple[float, Mapping[str, Any]]] = []

    async def send(self, result: Mapping[str, Any]) -> None:
        self.sent.append((trio.current_time(), json.loads(json.dumps(result))))


@asynccontextmanager
async def watched(*names: str, **more: Any) -> AsyncIterator[Cloud]:
    async with open_machine(document(*names, **more), registry=registry()) as memory, trio.open_nursery() as nursery:
        await memory.machine.lifecycle.running.wait()
        cloud = Cloud(memory)
        view, mask = MachineSource(memory.machine), lambda: memory.machine.configured.masker
        nursery.start_soon(partial(send_snapshots, view, mask, cloud.watch, cloud.send))
        yield cloud
        nursery.cancel_scope.cancel()


async def test_without_a_viewer_nothing_is_read_or_sent(autojump_clock: MockClock) -> None:
    async with watched("a") as cloud:
        await trio.sleep(100)
        assert cloud.sent == []
        assert asked == {}


async def test_readings_are_sent_once_a_second_while_there_is_a_viewer(
    autojump_clock: MockClock,
) -> None:
    async with watched("a", "b") as cloud:
        cloud.watch.extend(10)
        await trio.sleep(100)
        assert 10 <= len(cloud.sent) <= 12
        assert all(9 <= count <= 12 for count in asked.values())
        assert set(asked) == {"a", "b"}
        gaps = [later[0] - earlier[0] for earlier, later in zip(cloud.sent, cloud.sent[1:], strict=False)]
        assert min(gaps) >= PERIOD * 0.99
        last = cloud.sent[-1][1]
        assert [resource["name"] for resource in last["resources"]] == [f"{SENSOR}/a", f"{SENSOR}/b"]
        assert {item["state"] for item in last["resources"]} == {"ready"}
        assert last["readings"][f"{SENSOR}/a"]["values"][0][0] == "count"
        before = len(cloud.sent)
        cloud.watch.extend(5)  # the user looks again
        await trio.sleep(100)
        assert len(cloud.sent) > before


async def test_a_look_is_renewed_before_it_ends(autojump_clock: MockClock) -> None:
    async with watched("a") as cloud:
        for _ in range(5):
            cloud.watch.extend(10)
            await trio.sleep(5)
        assert 20 <= asked["a"] <= 27
        cloud.watch.extend(1)  # a shorter period does not shorten a running one
        assert cloud.watch.is_active


async def test_no_word_of_the_cloud_lasts_for_ever(autojump_clock: MockClock) -> None:
    watch = Watch()
    watch.extend(math.inf)
    await trio.sleep(LONGEST + 1)
    assert not watch.is_active


async def test_a_sensor_that_does_not_answer_delays_no_other(autojump_clock: MockClock) -> None:
    async with watched("a", "slow") as cloud:
        cloud.watch.extend(10)
        await trio.sleep(20)
        assert asked["a"] >= 9
        assert asked["slow"] == 1
        assert f"{SENSOR}/slow" not in cloud.sent[-1][1]["readings"]


async def test_removed_sensors_are_no_longer_read_and_new_ones_are(autojump_clock: MockClock) -> None:
    async with watched("a") as cloud:
        cloud.watch.extend(30)
        await trio.sleep(3)
        cloud.memory.write(document("b"))
        await trio.sleep(5)
        counted = asked["a"]
        await trio.sleep(5)
        assert asked["a"] == counted
        assert list(cloud.sent[-1][1]["readings"]) == [f"{SENSOR}/b"]


async def test_the_same_again_is_not_sent_again(autojump_clock: MockClock) -> None:
    async with watched("leaky") as cloud:
        cloud.watch.extend(30)
        await trio.sleep(40)
        assert len(cloud.sent) == 2  # once without readings, once with them
        assert asked["leaky"] >= 28


async def test_no_secret_of_the_document_is_sent(autojump_clock: MockClock) -> None:
    async with watched("leaky", attributes={"password": SECRET}) as cloud:
        cloud.watch.extend(5)
        await trio.sleep(10)
        text = json.dumps([result for _, result in cloud.sent])
        assert "the key is" in text
        assert SECRET not in text


async def test_only_so_many_sensors_are_read(autojump_clock: MockClock) -> None:
    async with watched(*(f"s{number:03}" for number in range(MAX_SENSORS + 5))) as cloud:
        cloud.watch.extend(2)
        await trio.sleep(5)
        assert len(asked) == MAX_SENSORS
        assert len(cloud.sent[-1][1]["resources"]) == MAX_SENSORS + 5


async def test_a_snapshot_is_bounded_whatever_there_is(autojump_clock: MockClock) -> None:
    async with watched("a") as cloud:
        status = cloud.memory.machine.status()
        (resource,) = status.resources
        huge = replace(resource, reason="x" * 10_000, dependencies=tuple(f"d{number}" for number in range(20)))
        many = tuple(replace(huge, name=f"{SENSOR}/{number}") for number in range(2000))
        readings = {
            f"{SENSOR}/{n}": SensorReading(0, tuple((f"k{i}", "v" * 900, 1.0) for i in range(500))) for n in range(50)
        }
        result = snapshot(replace(status, resources=many), readings)
        assert len(result["resources"][0]["reason"]) == MAX_TEXT
        cut = bounded(result)
        assert len(json.dumps(cut)) <= MAX_SNAPSHOT
        assert cut["resources"]
        assert len(cut["resources"]) + cut["omitted"] == 2000
        small = snapshot(status, {})
        assert bounded(small) == small

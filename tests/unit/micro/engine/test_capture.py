from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from micro.engine.attributes import Unfit
from micro.engine.capture import Capture, Reading, Ring, captures_of
from micro.engine.logs import Line, Log
from micro.wire import protobuf
from micro.wire.messages import SENSOR_DATA
from tests.unit.micro.bench import MicroBench, component


def captured(api: str, name: str, *methods: dict[str, Any], model: str = "fake") -> dict[str, Any]:
    service = {"type": "data_manager", "attributes": {"capture_methods": list(methods)}}
    return {**component(api, name, model), "service_configs": [service]}


async def test_readings_are_captured_at_their_period(autojump_clock: MockClock) -> None:
    bench = MicroBench(
        captured("sensor", "s", {"method": "Readings", "capture_frequency_hz": 2, "tags": ["t"]}),
        captured("motor", "m", {"method": "Position", "capture_frequency_hz": 1}),
        captured("sensor", "off", {"method": "Readings", "capture_frequency_hz": 2, "disabled": True}),
    )
    for _ in range(60):
        await bench.machine.capture_due()
        await trio.sleep(0.05)
    count = dict.fromkeys(("s", "m"), 0)
    for reading in bench.machine.ring.readings:
        count[reading.capture.key[1]] += 1
    assert count["s"] in (5, 6, 7)
    assert count["m"] in (2, 3, 4)
    first = next(each for each in bench.machine.ring.readings if each.capture.key[1] == "s")
    data = protobuf.decode(SENSOR_DATA, first.data)
    assert data["struct"] == {"readings": {"a": 1, "b": 2, "c": 3}}
    assert data["metadata"]["time_requested"]["seconds"] >= 1_800_000_000
    assert first.capture.tags == ["t"]


async def test_failing_captures_are_logged_once(autojump_clock: MockClock) -> None:
    bench = MicroBench(captured("board", "b", {"method": "Position", "capture_frequency_hz": 10}))
    for _ in range(20):
        await bench.machine.capture_due()
        await trio.sleep(0.1)
    assert [line for line in bench.lines if "cannot capture" in line] == [
        "error b: cannot capture Position: board does not have GetPosition"
    ]


async def test_capturing_can_be_switched_off(autojump_clock: MockClock) -> None:
    entry = captured("sensor", "s", {"method": "Readings", "capture_frequency_hz": 10})
    service = {"name": "data", "api": "rdk:service:data_manager", "attributes": {"capture_disabled": True}}
    bench = MicroBench(entry, services=[service])
    await bench.machine.capture_due()
    assert not bench.machine.ring.readings


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ({"method": "Images", "capture_frequency_hz": 1}, "capture_methods[0].method is 'Images'"),
        ({"method": "Readings", "capture_frequency_hz": 100}, "a number from 0 to 10"),
    ],
)
def test_wrong_captures_make_a_component_unhealthy(method: dict[str, Any], text: str) -> None:
    with pytest.raises(Unfit) as caught:
        captures_of(("sensor", "s"), [{"type": "data_manager", "attributes": {"capture_methods": [method]}}])
    assert text in str(caught.value)


def test_the_ring_is_bounded_and_loses_the_oldest() -> None:
    ring = Ring(1000)
    first, second = Capture(("sensor", "a"), "Readings", 1, []), Capture(("sensor", "b"), "Readings", 1, [])
    for number in range(50):
        ring.add(Reading(first if number % 2 else second, bytes([number]) * 90))
    assert ring.size == 990
    assert ring.lost == 39
    batch = ring.batch()
    assert {reading.capture for reading in batch} == {first}
    assert [reading.data[0] for reading in batch] == [39, 41, 43, 45, 47, 49]
    ring.remove(batch)
    assert ring.size == 450
    ring.add(Reading(first, bytes(2000)))
    assert (ring.size, ring.lost) == (450, 40)
    while batch := ring.batch():
        ring.remove(batch)
    assert ring.size == 0


def test_a_batch_is_bounded() -> None:
    ring = Ring(100_000)
    capture = Capture(("sensor", "a"), "Readings", 1, [])
    for _ in range(20):
        ring.add(Reading(capture, bytes(300)))
    assert len(ring.batch()) == 3
    assert len(ring.batch(100)) == 1


def test_the_log_is_bounded_and_says_how_much_is_missing() -> None:
    log = Log(5)
    for number in range(8):
        log.add(Line(number, 0, "info", "x", "y" * 1000))
    taken = log.take(3)
    assert taken[0].text == "3 lines were not kept"
    assert [line.seconds for line in taken[1:]] == [3, 4, 5]
    assert all(len(line.text) <= 200 for line in taken)
    for number in range(8, 11):
        log.add(Line(number, 0, "info", "x", "y"))
    log.put_back(taken)
    assert len(log.lines) == 5
    assert log.lost == 4
    assert [line.seconds for line in log.lines] == [6, 7, 8, 9, 10]

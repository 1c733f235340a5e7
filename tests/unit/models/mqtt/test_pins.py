"""Pins of boards at a broker: what a name is, when it becomes a switch, and which commands are refused."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from engine.components.controls.board import AnalogReading, Board
from engine.resource import Extra
from models.fake.board.model import FakeBoard
from models.mqtt.entities import Device
from models.mqtt.pins import PublishedPin
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench

BOARD = {"analogs": [{"name": "light", "pin": "5"}], "digital_interrupts": [{"name": "door", "pin": "7"}]}


class Module(FakeBoard):
    """A board with pin 37 only, that answers other names with `failures` by their method."""

    async def _refuse(self, name: str, method: str) -> None:
        failures: dict[str, MachineError] = getattr(self, "failures", {})
        if method in failures:
            raise failures[method]
        if method == "gpio" and name != "37":
            raise MachineError(f"pin {name} is unknown", kind=ErrorKind.INTERNAL)

    async def read_analog_reader(self, analog_reader_name: str, *, extra: Extra = None) -> AnalogReading:
        await self._refuse(analog_reader_name, "analog")
        return await super().read_analog_reader(analog_reader_name)

    async def get_gpio(self, pin: str, *, extra: Extra = None) -> bool:
        await self._refuse(pin, "gpio")
        return await super().get_gpio(pin)


class Levels(Board):
    """A board with pins only."""

    async def get_gpio(self, pin: str, *, extra: Extra = None) -> bool:
        return True


@pytest.fixture
async def bench(nursery: trio.Nursery) -> Bench:
    return Bench(nursery)


async def observed(board: Board, name: str) -> tuple[dict[str, Any], list[tuple[str, bool]]]:
    seen = await PublishedPin("pi", name).kind().observe(board)
    return seen.state, [(entity.kind, entity.commands) for entity in seen.controls]


async def test_each_kind_of_name(bench: Bench) -> None:
    pi = await bench.add("board", "pi", BOARD)
    await pi.set_gpio("5", True)
    await pi.set_gpio("7", True)
    assert await observed(pi, "37") == ({"state": "OFF"}, [("switch", True)])
    assert await observed(pi, "door") == ({"count": 1}, [("sensor", False)])
    state, entities = await observed(pi, "light")
    assert state["value"] == pytest.approx(1023, abs=10)
    assert entities == [("sensor", False)]


async def test_a_board_without_other_methods_has_switches() -> None:
    assert await observed(Levels.__new__(Levels), "37") == ({"state": "ON"}, [("switch", True)])


async def test_a_pin_is_switched(bench: Bench) -> None:
    pi = await bench.add("board", "pi", BOARD)
    kind = PublishedPin("pi", "37").kind()
    assert kind.obey is not None
    for text, high in (("ON", True), ("OFF", False)):
        await kind.obey(pi, text)
        assert await pi.get_gpio("37") is high
        assert (await kind.observe(pi)).state == {"state": text}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("37", "on", "send ON or OFF"),
        ("37", "1", "send ON or OFF"),
        ("light", "ON", "pi/light is not a GPIO pin"),
        ("door", "ON", "pi/door is not a GPIO pin"),
    ],
)
async def test_refused_commands(bench: Bench, name: str, text: str, reason: str) -> None:
    pi = await bench.add("board", "pi", BOARD)
    obey = PublishedPin("pi", name).kind().obey
    assert obey is not None
    with pytest.raises(MachineError, match=reason):
        await obey(pi, text)
    assert not await pi.get_gpio(name)


async def test_a_pin_that_does_not_exist(bench: Bench) -> None:
    pi = await bench.add("board", "pi", BOARD, cls=Module)
    with pytest.raises(MachineError, match=r"pi has no pin, .* named '99': pin 99 is unknown") as caught:
        await PublishedPin("pi", "99").kind().observe(pi)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_board_that_does_not_answer_makes_no_switch(bench: Bench) -> None:
    pi = await bench.add("board", "pi", BOARD, cls=Module)
    pi.failures = {"analog": MachineError("it is busy", kind=ErrorKind.UNAVAILABLE)}
    kind = PublishedPin("pi", "37").kind()
    assert kind.obey is not None
    for call in (kind.observe(pi), kind.obey(pi, "ON")):
        with pytest.raises(MachineError, match="it is busy"):
            await call
    pi.failures = {}
    assert (await kind.observe(pi)).state == {"state": "OFF"}


async def test_an_analog_reader_that_fails_stays_one(bench: Bench) -> None:
    pi = await bench.add("board", "pi", {"analogs": [{"name": "37"}]}, cls=Module)
    kind = PublishedPin("pi", "37").kind()
    assert "value" in (await kind.observe(pi)).state
    pi.failures = {"analog": MachineError("the converter is gone", kind=ErrorKind.INTERNAL)}
    for _ in range(2):
        with pytest.raises(MachineError, match="the converter is gone"):
            await kind.observe(pi)
    pi.failures = {"analog": MachineError("it is not configured", kind=ErrorKind.NOT_FOUND)}
    with pytest.raises(MachineError, match="not configured"):
        await kind.observe(pi)
    assert (await kind.observe(pi)).state == {"state": "OFF"}


async def test_the_document_of_a_pin(bench: Bench) -> None:
    pi = await bench.add("board", "pi", BOARD)
    (entity,) = (await PublishedPin("pi", "37").kind().observe(pi)).controls
    topic, payload = Device("home/cellar", "1").announced("homeassistant", "pi/37", entity, 40)
    assert Device("home/cellar", "1").is_place("homeassistant", topic)
    assert b'"name": "pi 37"' in payload
    assert b'"command_topic": "home/cellar/pi/37/set"' in payload
    assert b'"state_topic": "home/cellar/pi/37/state"' in payload

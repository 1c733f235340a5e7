"""The example machines: every entry is valid, every reference resolves, and the bench works as described."""

from __future__ import annotations

from pathlib import Path

import pytest
from trio.testing import MockClock

from engine.components.sensing.encoder import PositionType
from engine.registry import Registry
from models import BUILTIN
from schema.attributes import decode_attributes as decode_attributes
from schema.document.machine import decode_document
from tests.unit.models.builtin.support import Bench

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


@pytest.mark.parametrize("name", ["bench.json", "host.json"])
def test_an_example_has_no_problem(name: str) -> None:
    decoded = decode_document((EXAMPLES / name).read_bytes())
    assert not decoded.problems
    assert not decoded.document.broken
    entries = (*decoded.document.components, *decoded.document.services)
    names = {entry.name.name for entry in entries}
    for entry in entries:
        cls = Registry(BUILTIN).find(entry.name.api, entry.model)
        config, warnings = decode_attributes(cls.Config, entry.attributes, path=entry.path)
        assert not warnings
        assert {*config.requires(), *config.uses(), *entry.depends_on} <= names


async def test_the_bench_is_one_machine_of_twenty_resources(bench: Bench, autojump_clock: MockClock) -> None:
    decoded = decode_document((EXAMPLES / "bench.json").read_bytes())
    entries = (*decoded.document.components, *decoded.document.services)
    assert len(entries) >= 20
    created = {}
    for entry in entries:  # the file lists dependencies first
        created[entry.name.name] = await bench.add(
            str(entry.name.api),
            entry.name.name,
            entry.attributes,
            model=str(entry.model),
            depends_on=tuple(entry.depends_on),
        )
    await created["rover"].move_straight(500, 200)
    status = await created["rover"].get_status()
    assert status == pytest.approx({"x_mm": 0, "y_mm": 500, "heading_deg": 0}, abs=1e-3)
    ticks = (await created["left-encoder"].get_position(PositionType.TICKS_COUNT)).value
    assert ticks == int(500 / 217 * 600)
    assert (await created["right"].get_position()) == pytest.approx(500 / 217, abs=1 / 600)
    # A rising edge of track A is one of four ticks.
    assert await created["pi"].get_digital_interrupt_value("left-ticks") == pytest.approx(ticks / 4, abs=1)
    await created["pi"].set_gpio("18", True)
    assert await created["pi"].get_gpio("22")
    readings = await created["sensors"].get_readings(await created["sensors"].get_sensors())
    assert {str(reading.name) for reading in readings} >= {"rdk:component:sensor/climate", "rdk:component:sensor/host"}
    resources = await created["finder"].discover_resources()
    assert {(d.api, d.name) for d in resources} >= {("rdk:component:motor", "left"), ("rdk:component:arm", "arm")}
    for resource in reversed(list(created.values())):
        await bench.remove(resource)
    assert bench.world.devices() == []
    assert not any(pin.watchers or pin.wires for pin in bench.world.wiring.pins("pi"))

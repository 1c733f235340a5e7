"""Capture in a machine in memory, by the virtual clock."""

from __future__ import annotations

from pathlib import Path

import trio
from trio.testing import MockClock

from tests.unit.data.machines import Counting, contents, machine, numbers, sensor, status


async def test_readings_are_in_the_published_format(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with machine(tmp_path, sensor(10), tags=["bench"]) as memory:
        await trio.sleep(10.01)
        state = (await status(memory))["methods"]["rdk:component:sensor/s Readings"]
        assert state["captured"] == 100
        assert state["missed"] == 0
    assert numbers(tmp_path) == list(range(len(Counting.given)))
    assert len(Counting.given) >= 100
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

"""The machine sends a module the log level of each resource according to its rules, and sends changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.options import Options
from tests.unit.runtime.parts.modules.support import entry, machine, process_of, ready, sensor, until

ERROR = {"log_configuration": {"level": "error"}}


def document(*, first: Mapping[str, Any] = {}, **keys: Any) -> dict[str, Any]:
    return {"modules": [entry()], "components": [sensor("one", **first), sensor("two")], **keys}


def rules(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"pattern": pattern, "level": level} for pattern, level in pairs]


@pytest.mark.parametrize(
    ("keys", "first", "second"),
    [
        ({}, "info", "info"),
        ({"first": ERROR}, "error", "info"),
        ({"first": ERROR, "debug": True}, "debug", "debug"),
        ({"log": rules(("rdk.components.*", "debug"))}, "debug", "debug"),
        ({"log": rules(("rdk.components.sensor.one", "WARNING"))}, "warn", "info"),
        ({"log": rules(("rdk.*", "error"), ("rdk.components.*", "debug"))}, "debug", "debug"),
        ({"log": rules(("demo", "debug")), "first": ERROR}, "error", "debug"),
        ({"modules": [entry(log_level="debug")], "first": ERROR}, "error", "debug"),
    ],
)
async def test_the_level_of_each_resource_is_sent(
    autojump_clock: object, tmp_path: Path, keys: dict[str, Any], first: str, second: str
) -> None:
    async with machine(document(**keys), environment={"MACHINE_HOME": str(tmp_path)}) as (memory, processes):
        await until(lambda: ready(memory, "one", "two"))
        assert process_of(processes).levels == {"one": first, "two": second}


async def test_the_debug_option_beats_the_entry(autojump_clock: object, tmp_path: Path) -> None:
    options = Options(config=Path("memory.json"), debug=True)
    home = {"MACHINE_HOME": str(tmp_path)}
    async with machine(document(first=ERROR), environment=home, options=options) as (memory, processes):
        await until(lambda: ready(memory, "one", "two"))
        assert process_of(processes).levels == {"one": "debug", "two": "debug"}


async def test_a_changed_level_is_sent_and_rebuilds_that_resource_alone(autojump_clock: object, tmp_path: Path) -> None:
    async with machine(document(first=ERROR), environment={"MACHINE_HOME": str(tmp_path)}) as (memory, processes):
        await until(lambda: ready(memory, "one", "two"))
        process, two = process_of(processes), memory.machine.roster.find("two")
        for keys, level in (
            ({}, "info"),  # the resource's own level is removed
            ({"first": {"log_configuration": {"level": "Debug"}}}, "debug"),
            ({"log": rules(("rdk:component:sensor/one", "warn"))}, "warn"),
            ({}, "info"),
        ):
            memory.write(document(**keys))
            await until(lambda level=level: process.levels.get("one") == level and ready(memory, "one"), 5)
        assert process_of(processes) is process
        assert memory.machine.roster.find("two") is two

"""Shared support for capture tests: machines in memory that write without a thread, and readers of their files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import trio

from engine.components.sensing.sensor import Sensor
from engine.registry import Registry
from engine.resource import Attributes, Extra, Started, Value
from models import BUILTIN
from rpc.api.convert import values
from runtime.parts.data.files.disk import InlineDisk
from runtime.parts.data.files.read import Content, capture_files, read_capture_file
from runtime.parts.data.manager import BuiltinDataManager
from runtime.server.memory import MemoryMachine, open_machine

HERE = "tests.unit.runtime.parts.data.machines"


class InlineManager(BuiltinDataManager):
    """The data manager without a disk thread, for use with the virtual clock."""

    DISK: ClassVar[Any] = InlineDisk


class CountingConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a counting sensor."""

    generation: str = ""  # a change makes it a different resource


class Counting(Sensor):
    """Return the next number with each reading; class attributes set its behavior."""

    Config: ClassVar[type[Attributes]] = CountingConfig
    returned: ClassVar[list[int]] = []
    extras: ClassVar[list[Any]] = []
    errors: ClassVar[dict[int, Exception]] = {}  # by the number of the call
    slow: ClassVar[dict[int, float]] = {}
    calls: ClassVar[int] = 0
    lives: ClassVar[list[str]] = []

    async def run(self, *, task_status: Started) -> None:
        try:
            Counting.lives.append("begins")
            task_status.started()
            await trio.sleep_forever()
        finally:
            Counting.lives.append("ends")

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        Counting.calls += 1
        Counting.extras.append(extra)
        await trio.sleep(self.slow.get(Counting.calls, 0.0))
        if Counting.calls in self.errors:
            raise self.errors[Counting.calls]
        Counting.returned.append(len(Counting.returned))
        return {"number": Counting.returned[-1]}


def fresh() -> None:
    """Reset the counting sensor."""
    Counting.returned = []
    Counting.extras = []
    Counting.errors = {}
    Counting.slow = {}
    Counting.calls = 0
    Counting.lives = []


def registry() -> Registry:
    return Registry(
        {
            **BUILTIN,
            ("rdk:service:data_manager", "rdk:builtin:builtin"): f"{HERE}:InlineManager",
            ("rdk:component:sensor", "rdk:builtin:counting"): f"{HERE}:Counting",
        },
        offers=lambda: (),
    )


def capturing(*methods: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return `service_configs` of an entry."""
    return [{"type": "data_manager", "attributes": {"capture_methods": list(methods)}}]


def readings(frequency: float, **more: Any) -> dict[str, Any]:
    return {"method": "Readings", "capture_frequency_hz": frequency, **more}


def sensor(frequency: float, name: str = "s", *, model: str = "counting", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "api": "rdk:component:sensor",
        "model": model,
        "service_configs": capturing(readings(frequency, **more)),
    }


def document(folder: Path, *components: Mapping[str, Any], **attributes: Any) -> dict[str, Any]:
    manager = {
        "name": "data",
        "api": "rdk:service:data_manager",
        "attributes": {"capture_dir": str(folder), **attributes},
    }
    return {"components": list(components), "services": [manager]}


@asynccontextmanager
async def machine(
    folder: Path, *components: Mapping[str, Any], cloud: Any = None, **attributes: Any
) -> AsyncIterator[MemoryMachine]:
    """Run a machine in memory that captures; yield it when everything is ready."""
    fresh()
    async with open_machine(document(folder, *components, **attributes), registry=registry(), cloud=cloud) as memory:
        await memory.machine.lifecycle.running.wait()
        yield memory


def contents(folder: Path) -> Iterator[Content]:
    """Yield the content of every file; each must be complete."""
    for path in capture_files(folder):
        content = read_capture_file(path)
        assert content.damage is None, (path, content.damage)
        yield content


def structs(folder: Path) -> list[Any]:
    """Return every tabular reading as plain data, in the order of the files."""
    return [values.read_struct(reading.struct) for content in contents(folder) for reading in content.readings]


def numbers(folder: Path) -> list[int]:
    """Return the numbers of the counting sensor in the files."""
    return [int(reading["readings"]["number"]) for reading in structs(folder) if "number" in reading["readings"]]


async def status(memory: MemoryMachine) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await memory.client().call("rdk:service:data_manager", "data", "get_status")
    return answer

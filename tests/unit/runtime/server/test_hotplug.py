"""A device that reappears makes its resource ready at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from engine.components.sensing.sensor import Sensor
from engine.registry import Registry
from engine.resource import Started
from hal.errors import Fault, HalError
from hal.ports.hotplug import HotplugEvent, HotplugEvents
from hal.sim import World
from hal.sim.hardware import SimHardware
from runtime.server.hotplug import may_help
from runtime.server.memory import MemoryMachine, open_machine
from schema.names import Model

PORT = "rdk:component:sensor/port"
PLUGGED = HotplugEvent("add", "tty", "/devices/usb1/ttyUSB0", "/dev/ttyUSB0")


class Port(Sensor):
    """Run while the device is plugged in."""

    plugged: ClassVar[trio.Event | None] = None  # set when the device is unplugged
    tries: ClassVar[list[float]] = []

    async def run(self, *, task_status: Started) -> None:
        type(self).tries.append(trio.current_time())
        unplugged = type(self).plugged
        if unplugged is None:
            raise HalError("port", Fault.GONE)
        task_status.started()
        await unplugged.wait()
        type(self).plugged = None
        raise HalError("port", Fault.GONE)


class HardwareWithEvents(SimHardware):
    """Let the test send hot-plug events."""

    def __init__(self) -> None:
        super().__init__(World())
        self.send, self.receive = trio.open_memory_channel[HotplugEvent](10)

    @asynccontextmanager
    async def hotplug(self) -> AsyncIterator[HotplugEvents]:
        yield self.receive


class HardwareWithoutEvents(SimHardware):
    @asynccontextmanager
    async def hotplug(self) -> AsyncIterator[HotplugEvents]:
        raise HalError("netlink", Fault.PERMISSION)
        yield


def registry() -> Registry:
    Port.plugged, Port.tries = None, []
    result = Registry({})
    result.add(Port.API, Model.parse("port"), Port)
    return result


def document() -> dict[str, object]:
    return {"components": [{"name": "port", "api": "rdk:component:sensor", "model": "port"}]}


def state(memory: MemoryMachine) -> str:
    return memory.graph.snapshot().nodes[PORT].state.value


async def test_a_failed_resource_is_retried_when_a_device_appears(mock_clock: MockClock) -> None:
    hardware = HardwareWithEvents()
    async with open_machine(document(), registry=registry(), hardware=hardware) as memory:
        await wait_all_tasks_blocked()
        assert Port.tries == [0.0]
        assert state(memory) == "unhealthy"
        Port.plugged = trio.Event()
        await hardware.send.send(PLUGGED)
        await wait_all_tasks_blocked()
        assert state(memory) == "ready"
        Port.plugged.set()
        await wait_all_tasks_blocked()
        assert state(memory) == "unhealthy"
        await hardware.send.send(PLUGGED)
        await wait_all_tasks_blocked()
        assert Port.tries == [0.0, 0.0, 0.0], "without any delay"


async def test_running_resources_and_removals_cause_no_retry(mock_clock: MockClock) -> None:
    hardware = HardwareWithEvents()
    async with open_machine(document(), registry=registry(), hardware=hardware) as memory:
        await wait_all_tasks_blocked()
        await hardware.send.send(HotplugEvent("remove", "tty", "/devices/usb1/ttyUSB0"))
        await wait_all_tasks_blocked()
        assert len(Port.tries) == 1
        Port.plugged = trio.Event()
        for _ in range(3):
            await hardware.send.send(PLUGGED)
        await wait_all_tasks_blocked()
        assert len(Port.tries) == 2
        assert state(memory) == "ready"


async def test_without_events_the_resource_is_retried_with_back_off(autojump_clock: MockClock) -> None:
    async with open_machine(document(), registry=registry(), hardware=HardwareWithoutEvents(World())) as memory:
        await memory.graph.settled()
        Port.plugged = trio.Event()
        with trio.fail_after(11):
            async for snapshot in memory.graph.changes():
                if snapshot.nodes[PORT].state.value == "ready":
                    break


@pytest.mark.parametrize(
    ("action", "subsystem", "helps"),
    [
        ("add", "i2c-dev", True),
        ("bind", "usb", True),
        ("lost", "", True),
        ("remove", "tty", False),
        ("unbind", "usb", False),
        ("add", "net", False),
        ("change", "block", False),
    ],
)
def test_which_events_help(action: str, subsystem: str, helps: bool) -> None:
    assert may_help(HotplugEvent(action, subsystem, "/devices/x")) is helps

"""A simulated bus with one chip, a machine with one driver, and virtual time for property tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio
from trio.testing import MockClock

from hal.registers import Registers
from hal.sim import World
from hal.sim.hardware import SimHardware
from hal.sim.target import I2cTarget
from nursery_graph.lifecycle import State
from nursery_graph.status import NodeStatus
from runtime.server.memory import MemoryMachine, open_machine
from schema.names import API

T = TypeVar("T")


def virtually(procedure: Callable[[], Awaitable[T]]) -> T:
    """Run `procedure` to its end in virtual time, in an event loop of its own."""
    return trio.run(procedure, clock=MockClock(autojump_threshold=0))


def registers_of(address: int, target: I2cTarget) -> Registers:
    """Return the registers of a chip that is alone on a bus."""
    bus = SimHardware(World()).bus("1")
    bus.attach(address, target)
    return Registers(bus, address)


class Driven:
    """A machine in memory with the resource `it` under test."""

    def __init__(self, memory: MemoryMachine, hardware: SimHardware, api: str) -> None:
        self.memory = memory
        self.hardware = hardware
        self.bus = hardware.bus("1")
        self.api = API.parse(api)

    async def call(self, method: str, **arguments: Any) -> Any:
        return await self.memory.client().call(self.api, "it", method, **arguments)

    async def readings(self) -> Any:
        return await self.call("get_readings")

    def node(self, name: str = "it") -> NodeStatus:
        return next(n for full, n in self.memory.graph.snapshot().nodes.items() if full.endswith(f"/{name}"))

    async def settle(self) -> None:
        await self.memory.graph.settled()

    async def until(self, state: State, name: str = "it") -> NodeStatus:
        async for snapshot in self.memory.graph.changes():
            for full, node in snapshot.nodes.items():
                if full.endswith(f"/{name}") and node.state is state:
                    return node
        raise AssertionError("the graph has ended")


@asynccontextmanager
async def driving(
    api: str,
    model: str,
    address: int,
    target: I2cTarget,
    *others: dict[str, Any],
    ready: bool = True,
    **attributes: Any,
) -> AsyncIterator[Driven]:
    """Run a machine whose resource `it` uses the chip at `address` of bus 1; wait until it is ready if `ready`."""
    hardware = SimHardware(World())
    hardware.bus("1").attach(address, target)
    api = f"rdk:component:{api}"
    entry = {"name": "it", "api": api, "model": model, "attributes": {"i2c_bus": "1", **attributes}}
    async with open_machine({"components": [entry, *others]}, hardware=hardware) as memory:
        driven = Driven(memory, hardware, api)
        await trio.testing.wait_all_tasks_blocked()
        await driven.settle()
        if ready:
            assert driven.node().state is State.READY, driven.node().reason
        yield driven

"""A module in memory whose parent is a machine in memory: no process, no socket, virtual time."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import structlog
import trio

from engine.resource import Resource
from hal.sim import World
from hal.sim.hardware import SimHardware
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from runtime.sdk.logs import MachineSink
from runtime.sdk.module import RunningModule
from runtime.sdk.offers import OfferedDrivers
from runtime.server.memory import MemoryMachine, open_machine
from telemetry.logs.entry import Entry
from telemetry.logs.loggers import configure_logs

SERVICE = "viam.module.v1.ModuleService"
SENSOR, MOTOR, GENERIC = "rdk:component:sensor", "rdk:component:motor", "rdk:component:generic"
PLAIN = {"name": "plain", "api": SENSOR, "model": "fake"}


class KeptSink:
    """Record the entries that no other sink has taken."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.closed = False

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)

    def close(self) -> None:
        self.closed = True


class Running:
    """A running module; `parent` is its machine."""

    def __init__(self, module: RunningModule, sink: MachineSink, parent: MemoryMachine) -> None:
        self.module = module
        self.sink = sink
        self.parent = parent
        self.parent_gone = trio.Event()
        self.stopped = trio.Event()
        self.dialled: list[str] = []
        self.calls = ApiClient(MemoryChannel(module.router))

    async def ask(self, method: str, **arguments: Any) -> Any:
        return await self.calls.call(SERVICE, "", method, **arguments)

    async def introduce(self) -> Any:
        return await self.ask("ready", parent_address="/parent", raw_parent_address="/parent")

    async def add(self, api: str, name: str, model: str, dependencies: Sequence[str] = (), **attributes: Any) -> None:
        await self.ask("add_resource", config=config(api, name, model, **attributes), dependencies=list(dependencies))

    async def remove(self, api: str, name: str) -> None:
        await self.ask("remove_resource", name=f"{api}/{name}")


def config(api: str, name: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": api, "model": model, "attributes": attributes}


@asynccontextmanager
async def open_module(
    *drivers: type[Resource], machine: Mapping[str, Any] | None = None, introduced: bool = True
) -> AsyncIterator[Running]:
    with logging_into(KeptSink()):
        async with _open(drivers, machine, introduced) as running:
            yield running


@contextmanager
def logging_into(sink: KeptSink) -> Iterator[None]:
    before, root = structlog.get_config(), logging.getLogger()
    level, logs = root.level, configure_logs([sink])
    try:
        yield
    finally:
        logs.close()
        root.setLevel(level)
        structlog.configure(**before)


@asynccontextmanager
async def _open(
    drivers: Sequence[type[Resource]], machine: Mapping[str, Any] | None, introduced: bool
) -> AsyncIterator[Running]:
    async with open_machine(machine or {"components": [PLAIN]}) as parent:
        await parent.machine.lifecycle.running.wait()
        world = World()
        sink = MachineSink("here", KeptSink())
        running: Running

        @asynccontextmanager
        async def dial(address: str) -> AsyncIterator[tuple[Any, Callable[[], Awaitable[None]]]]:
            running.dialled.append(address)
            yield MemoryChannel(parent.serving.router), running.parent_gone.wait

        module = RunningModule(
            OfferedDrivers(drivers),
            "demo",
            sink,
            world=world,
            hardware=SimHardware(world),
            dial=dial,
            jitter=lambda: 0.5,
        )
        running = Running(module, sink, parent)
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                await module.run()
                running.stopped.set()

            nursery.start_soon(run)
            if introduced:
                await running.introduce()
            yield running
            module.stop("the test ends")

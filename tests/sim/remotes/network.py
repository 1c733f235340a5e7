"""Machines in memory that are each other's remotes, over a network that can be cut, held and released."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

import trio
from trio.testing import memory_stream_pair

from engine.components.motion.motor import Motor
from engine.components.sensing.sensor import Sensor
from engine.registry import Registry
from engine.resource import Attributes, Extra, Started
from rpc.call import ServerCore
from rpc.http2.server import serve_http2
from runtime.parts.remotes.dial import Route
from runtime.parts.remotes.manager import Remotes
from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import MachineError
from schema.names import Model

MOTOR, SENSOR, ROBOT = "rdk:component:motor", "rdk:component:sensor", "viam.robot.v1.RobotService"


class Options(Attributes):
    speed: float = 0.0  # an attribute that tests change
    needs: tuple[str, ...] = ()  # names of required resources
    slow: float = 0.0  # seconds until the resource is ready

    def requires(self) -> tuple[str, ...]:
        """Return the names of required resources. See Attributes.requires."""
        return self.needs


class Wheel(Motor):
    """A motor that moves while it has power; `events` records what happens to every instance."""

    Config = Options
    events: ClassVar[list[tuple[float, str, str]]] = []  # time, event, name

    def note(self, event: str) -> None:
        self.events.append((trio.current_time(), event, self.name.short))

    async def run(self, *, task_status: Started) -> None:
        await trio.sleep(self.attributes.slow)
        self.power = 0.0
        self.note("start")
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self.note("end")

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        self.power = power_pct
        self.note("power")

    async def stop(self, *, extra: Extra = None) -> None:
        self.power = 0.0
        self.note("stop")

    async def is_moving(self) -> bool:
        return self.power != 0

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        await trio.sleep_forever()


class Gauge(Sensor):
    """A sensor that reads its configured value; `broken` names instances that cannot start."""

    Config = Options
    broken: ClassVar[set[str]] = set()

    async def run(self, *, task_status: Started) -> None:
        if self.name.short in self.broken:
            raise MachineError("no such bus")
        await super().run(task_status=task_status)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        return {"speed": self.attributes.speed, "needs": [str(name) for name in self.dependencies]}


def registry() -> Registry:
    models = Registry({})
    for cls in (Wheel, Gauge):
        models.add(cls.API, Model.parse("test"), cls)
    return models


def motor(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": MOTOR, "model": "test", "attributes": attributes}


def gauge(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": SENSOR, "model": "test", "attributes": attributes}


def document(*components: dict[str, Any], remotes: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """Return a document with these components; `remotes` maps names to addresses."""
    entries = [
        {"name": name, "address": address, "insecure": True, **more} for name, address in (remotes or {}).items()
    ]
    return {"components": list(components), "remotes": entries}


class Wire(trio.abc.Stream):
    """One end of a connection. While it is held, no data passes and neither side notices."""

    def __init__(self, inner: trio.abc.Stream) -> None:
        self._inner = inner
        self._open = trio.Event()
        self._open.set()

    def hold(self) -> None:
        """Stop passing data."""
        self._open = trio.Event()

    def release(self) -> None:
        """Pass the data that was held back, and all later data."""
        self._open.set()

    async def send_all(self, data: Any) -> None:
        await self._open.wait()
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data = await self._inner.receive_some(max_bytes)
        await self._open.wait()
        return bytes(data)

    async def aclose(self) -> None:
        await self._inner.aclose()


class Network:
    """Machines by address; create it with `open_network`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.machines: dict[str, MemoryMachine] = {}
        self.held: set[str] = set()  # addresses that accept connections and never answer
        self._nursery = nursery
        self._wires: list[tuple[str, str, Wire]] = []  # from, to
        self._ends: dict[str, trio.Event] = {}

    async def start(self, address: str, document: Mapping[str, Any]) -> MemoryMachine:
        """Start a machine at an address; its first document may still be being applied."""
        memory: MemoryMachine = await self._nursery.start(self._live, address)
        memory.write(document)
        await trio.sleep(0.001)
        return memory

    async def _live(self, address: str, *, task_status: trio.TaskStatus[MemoryMachine]) -> None:
        end = self._ends[address] = trio.Event()

        async def dial(way: Route) -> trio.abc.Stream:
            return self._dialled(address, way.target.host)

        async with open_machine({}, registry=registry()) as memory:
            await memory.machine.lifecycle.running.wait()
            around = replace(memory.configuration.context, environment={})
            memory.machine.parts.present["remotes"] = Remotes(around, dial=dial)
            self.machines[address] = memory
            task_status.started(memory)
            await end.wait()

    def stop(self, address: str) -> None:
        """Begin the orderly shutdown of a machine."""
        self.crash(address)
        self._ends[address].set()

    def crash(self, address: str) -> None:
        """Close all connections of a machine and accept no new ones, as others see a `kill -9`."""
        self.machines.pop(address)
        self.cut(address)

    def cut(self, address: str) -> None:
        """Close all connections from and to a machine."""
        for connection in [wire for wire in self._wires if address in wire[:2]]:
            self._wires.remove(connection)
            self._nursery.start_soon(connection[2].aclose)
            connection[2].release()

    def hold(self, address: str) -> None:
        """Make a machine hang: its connections stay open, and no answer comes back."""
        self.held.add(address)
        for _, to, wire in self._wires:
            if to == address:
                wire.hold()

    def release(self, address: str) -> None:
        """Undo `hold`."""
        self.held.discard(address)
        for _, to, wire in self._wires:
            if to == address:
                wire.release()

    def _dialled(self, here: str, there: str) -> trio.abc.Stream:
        if there not in self.machines:
            raise OSError("connection refused")
        ours, theirs = memory_stream_pair()
        wire = Wire(theirs)
        if there in self.held:
            wire.hold()
        self._wires.append((here, there, wire))
        self._nursery.start_soon(serve_http2, wire, ServerCore(self.machines[there].serving.router))
        return ours


@asynccontextmanager
async def open_network() -> AsyncIterator[Network]:
    """Yield a network; stop all its machines at the end."""
    async with trio.open_nursery() as nursery:
        network = Network(nursery)
        yield network
        for address in [*network.machines]:
            network.stop(address)
        nursery.cancel_scope.cancel()

"""A whole machine in memory: machine-server without process, files and sockets, for tests and experiments.

It works with Trio's virtual clock. Calls pass through the router, dispatch, messages and the driver, as in RPC.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from engine import Bench, Options, Registry
from engine.planning import RPC
from hal import Hardware
from hal.sim import SimHardware, World
from models import BUILTIN
from nursery_graph import Graph, Node
from rpc.api import ApiClient, MemoryChannel
from runtime.server.configuration import Configuration
from runtime.server.machine import Machine
from runtime.server.port.serving import Serving
from schema.document import MachineDocument
from support import ChangeSignal
from telemetry.logs import LogRing, Logs
from uplink import FileReading


class MemorySource:
    """A source whose document is set by `write`; slow readers receive only the newest."""

    def __init__(self, data: bytes = b"{}") -> None:
        self._reading = FileReading(data)
        self._changes = ChangeSignal()
        self.accepted: bytes | None = None  # the last accepted document

    def write(self, data: bytes) -> None:
        """Replace the document."""
        self._reading = FileReading(data)
        self._changes.announce()

    @asynccontextmanager
    async def readings(self) -> AsyncIterator[AsyncIterator[FileReading]]:
        """Return an iterator of the current and all later documents."""
        async with aclosing(self._changes.values(lambda: self._reading)) as readings:
            yield readings

    async def used(self, reading: FileReading) -> None:
        """Store the accepted document in `accepted`."""
        self.accepted = reading.data


class MemoryServing(Serving):
    """The port without sockets: its node is ready immediately and does not listen."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.bound.set()  # there is no port

    def node(self, document: MachineDocument) -> Node:
        """Return a node with the same name and version that only waits."""
        return Node(RPC, self._wait, requires=super().node(document).requires, version=super().node(document).version)

    async def _wait(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.sleep_forever()


class MemoryMachine:
    """A machine in memory, created by `open_machine`."""

    def __init__(
        self,
        document: Mapping[str, Any],
        registry: Registry | None,
        jitter: float,
        hardware: Hardware | None,
        logs: Logs | None = None,
        options: Options | None = None,
        cloud: Any = None,
    ) -> None:
        self.source = MemorySource(json.dumps(document).encode())
        world = hardware.world if isinstance(hardware, SimHardware) else World()
        self.graph = Graph(jitter=lambda: jitter)
        self.machine = Machine(
            options or Options(config=Path("memory.json")),
            registry=registry or Registry(BUILTIN),
            graph=self.graph,
            log_ring=logs.ring if logs is not None else LogRing(),
            bench=Bench(world, hardware or SimHardware(world)),
            cloud=cloud,
        )
        self.serving = MemoryServing(self.machine)
        self.configuration = Configuration(
            self.machine, self.serving, logs or Logs((), LogRing(), trio.current_time), self.source, {}
        )

    def client(self, metadata: Mapping[str, str] | None = None) -> ApiClient:
        """Return a client of this machine."""
        return ApiClient(MemoryChannel(self.serving.router), metadata=metadata)

    def write(self, document: Mapping[str, Any] | bytes) -> None:
        """Change the configuration; it is applied when the machine's tasks run."""
        self.source.write(document if isinstance(document, bytes) else json.dumps(document).encode())


@asynccontextmanager
async def open_machine(
    document: Mapping[str, Any],
    *,
    registry: Registry | None = None,
    jitter: float = 0.5,
    hardware: Hardware | None = None,
    logs: Logs | None = None,
    options: Options | None = None,
    cloud: Any = None,
) -> AsyncIterator[MemoryMachine]:
    """Run a machine in memory, with simulated hardware unless `hardware` is given, and stop it in order at the end.

    `logs` is the log pipeline that documents configure, which the caller closes; without it no entries are stored.
    `cloud` takes the place of CloudLink (in runtime.parts.cloud.link); only its address is used.
    """
    memory = MemoryMachine(document, registry, jitter, hardware, logs, options, cloud)
    memory.graph.apply([memory.configuration.node()])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_stop_when_asked, memory)

        async def run(*, task_status: trio.TaskStatus[None]) -> None:
            await memory.graph.run(task_status=task_status)
            nursery.cancel_scope.cancel()

        await nursery.start(run)
        yield memory
        memory.graph.stop("the machine in memory is closed")


async def _stop_when_asked(memory: MemoryMachine) -> None:
    await memory.machine.lifecycle.stopping.wait()
    memory.graph.stop(memory.machine.lifecycle.stop_reason)

"""A whole machine in memory: everything of machine-server but process, files and sockets. For tests and experiments.

Works under Trio's virtual clock. Calls take the way of RPC: router, dispatch, messages, driver.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from hal.ports.hardware import Hardware
from hal.sim import World
from hal.sim.hardware import SimHardware
from nursery_graph import Graph, Node
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from runtime.configuration import Configuration
from runtime.machine import Machine
from runtime.options import Options
from runtime.registry import Registry
from runtime.serving import NODE, Serving
from schema.machine import MachineDocument
from telemetry.log import Logs
from telemetry.ring import LogRing
from uplink.files import Reading


class MemorySource:
    """A document that is changed by `write`; a slow reader sees the newest."""

    def __init__(self, data: bytes = b"{}") -> None:
        self._reading = Reading(data)
        self._changed = trio.Event()
        self.kept: bytes | None = None  # the last document that could be used

    def write(self, data: bytes) -> None:
        """Replace the document."""
        self._reading = Reading(data)
        self._changed.set()

    @asynccontextmanager
    async def readings(self) -> AsyncIterator[AsyncIterator[Reading]]:
        """As FileSource."""
        yield self._iterate()

    async def used(self, reading: Reading) -> None:
        """As Source."""
        self.kept = reading.data

    async def _iterate(self) -> AsyncIterator[Reading]:
        while True:
            self._changed = trio.Event()
            yield self._reading
            await self._changed.wait()


class MemoryServing(Serving):
    """The port without sockets: its node is ready at once and listens to nothing."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.bound.set()  # there is no port

    def node(self, document: MachineDocument) -> Node:
        """A node of the same name and version that only waits."""
        return Node(NODE, self._wait, requires=super().node(document).requires, version=super().node(document).version)

    async def _wait(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.sleep_forever()


class MemoryMachine:
    """One machine; make it with `open_machine`."""

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
            registry=registry or Registry(),
            graph=self.graph,
            log_ring=logs.ring if logs is not None else LogRing(),
            world=world,
            hardware=hardware or SimHardware(world),
        )
        self.machine.cloud = cloud
        self.serving = MemoryServing(self.machine)
        self.configuration = Configuration(
            self.machine, self.serving, logs or Logs((), LogRing(), trio.current_time), self.source, {}
        )

    def client(self, metadata: Mapping[str, str] | None = None) -> ApiClient:
        """A client of this machine."""
        return ApiClient(MemoryChannel(self.serving.router), metadata=metadata)

    def write(self, document: Mapping[str, Any] | bytes) -> None:
        """Change the configuration; it is taken as soon as the machine's tasks run."""
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
    """Run a machine in memory, on the simulated family unless `hardware` is given, and stop it in order at the end.

    `logs` is the pipeline that its documents steer, which is its caller's to close; without it nothing is kept.
    `cloud` is what runtime.cloud.link.CloudLink is for a process, of which its address is used.
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
    await memory.machine.stopping.wait()
    memory.graph.stop(memory.machine.stop_reason)

"""A machine in the test's own process: on the simulated family, or on this computer's hardware."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog
import trio

from hal.sim.hardware import SimHardware
from hal.sim.world import World
from rpc.api.client import ApiClient
from runtime.machine import Machine
from runtime.memory import MemoryMachine, open_machine
from runtime.registry import Registry, installed
from runtime.resource import Resource
from runtime.rig.artefacts import LogSink
from runtime.rig.faults import Bench, Context, SimBench
from runtime.rig.outputs import Outputs, WatchedLinux, WatchedSim
from runtime.rig.plant import LocalPlant, PlantLink
from runtime.rig.setup import Backend, Setup
from schema.errors import ErrorKind, MachineError
from telemetry.log import configure

START_LIMIT: Final = 60.0  # seconds of the rig's clock until everything was tried once


@asynccontextmanager
async def open_sim(setup: Setup) -> AsyncIterator[Backend]:
    """On a simulated computer, with the plant beside it."""
    hardware = WatchedSim(World(seed=setup.seed), setup.outputs)
    plant = None if setup.plant is None else LocalPlant(setup.plant(hardware))
    async with _open(setup, hardware, SimBench(hardware), plant) as backend:
        yield backend


@asynccontextmanager
async def open_linux(setup: Setup) -> AsyncIterator[Backend]:
    """On the hardware of this computer."""
    async with _open(setup, WatchedLinux(setup.outputs), None, None) as backend:
        yield backend


@asynccontextmanager
async def _open(
    setup: Setup, hardware: WatchedSim | WatchedLinux, bench: Bench | None, plant: PlantLink | None
) -> AsyncIterator[Backend]:
    before, root = structlog.get_config(), logging.getLogger()
    level = root.level
    logs = configure([LogSink(setup.artefacts)])
    try:
        async with trio.open_nursery() as nursery:
            local = LocalMachine(setup, hardware, bench, plant, nursery)
            await local.start()
            yield local
            await local.stop()
    finally:
        setup.unsafe.extend(_unsafe(setup.outputs, hardware))
        logs.close()
        root.setLevel(level)
        structlog.configure(**before)


def _unsafe(outputs: Outputs, hardware: WatchedSim | WatchedLinux) -> list[str]:
    """What is wrong after the stop: still driven, not at its safe level, or left on the bench."""
    wrong = outputs.unsafe()
    if isinstance(hardware, SimHardware):
        wrong += [
            f"{state.name} is {state.level:d} after the stop; its safe level is {state.safe:d}"
            for state in hardware.lines.outputs()
            if state.level != state.safe
        ]
        wrong += [f"{device.name} was left on the bench" for device in hardware.world.devices()]
    return wrong


def _registry(models: Sequence[str | type[Resource]]) -> Registry:
    """The built-in models, those installed, and the test's own."""
    registry = Registry(offers=lambda: [*installed(), *(one for one in models if isinstance(one, str))])
    for cls in models:
        if not isinstance(cls, str):
            if cls.MODEL is None:
                raise MachineError(
                    f"{cls.__name__} names no model",
                    kind=ErrorKind.INVALID,
                    remedy="decorate it with runtime.resource.model",
                )
            registry.add(cls.API, cls.MODEL, cls)
    return registry


class LocalMachine:
    """The machine, which may be stopped and started again while the test runs."""

    def __init__(
        self,
        setup: Setup,
        hardware: WatchedSim | WatchedLinux,
        bench: Bench | None,
        plant: PlantLink | None,
        nursery: trio.Nursery,
    ) -> None:
        self.hardware = hardware
        self.bench = bench
        self.plant = plant
        self._setup = setup
        self._nursery = nursery
        self._memory: MemoryMachine | None = None
        self._stop = trio.Event()
        self._stopped = trio.Event()

    @property
    def machine(self) -> Machine | None:
        """While it runs."""
        return self._memory.machine if self._memory is not None else None

    @property
    def client(self) -> ApiClient:
        """A client of the machine; MachineError (unavailable) while it does not run."""
        if self._memory is None:
            raise MachineError("the machine has no power", kind=ErrorKind.UNAVAILABLE)
        return self._memory.client()

    async def start(self) -> None:
        """Start it, and wait until every resource was tried once; MachineError names those that are not ready."""
        memory: MemoryMachine = await self._nursery.start(self._live)
        with trio.move_on_after(START_LIMIT) as limit:
            await memory.machine.running.wait()
        not_ready = [
            f"{one.name} is {one.state}: {one.reason}"
            for one in memory.machine.status().resources
            if one.state != "ready"
        ]
        if memory.machine.config.rejected:
            not_ready.append(memory.machine.config.rejected)
        if limit.cancelled_caught or not_ready:
            waited = f" within {START_LIMIT:g} s" if limit.cancelled_caught else ""
            raise MachineError(
                f"the machine is not ready{waited}:\n" + "\n".join(not_ready),
                kind=ErrorKind.PRECONDITION,
                remedy="correct its configuration, or what it is connected to",
            )

    async def _live(self, *, task_status: trio.TaskStatus[MemoryMachine]) -> None:
        self._stop, self._stopped = trio.Event(), trio.Event()
        try:
            registry = _registry(self._setup.models)
            async with open_machine(self._setup.document, registry=registry, hardware=self.hardware) as memory:
                memory.graph.subscribe(self._setup.artefacts.transition)
                self._memory = memory
                task_status.started(memory)
                await self._stop.wait()
                self._memory = None
        finally:
            self._memory = None
            self._stopped.set()

    async def stop(self) -> None:
        """Stop it in order."""
        self._stop.set()
        await self._stopped.wait()

    @property
    def power_loss(self) -> Callable[[], Context] | None:
        """Of a simulated computer: every pin lets go, and what the machine does while it stops reaches nobody."""
        hardware = self.hardware
        return None if not isinstance(hardware, SimHardware) else lambda: self._power_loss(hardware)

    @asynccontextmanager
    async def _power_loss(self, hardware: SimHardware) -> AsyncIterator[None]:
        hardware.power_off()
        await self.stop()
        try:
            yield
        finally:
            hardware.power_on()
        await self.start()

"""A machine in the process of the test, on simulated hardware or the hardware of this computer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog
import trio

from engine import Registry, Resource, installed_models
from hal.sim import SimHardware, World
from models import BUILTIN
from rig.artefacts import LogSink
from rig.faults import Bench, Context, SimBench
from rig.outputs import Outputs, WatchedLinux, WatchedSim
from rig.plant import LocalPlant, PlantLink
from rig.setup import Backend, Setup
from rpc.api import ApiClient
from runtime.server import Machine, MemoryMachine, open_machine
from schema import ErrorKind, MachineError
from telemetry.logs import configure_logs

START_LIMIT: Final = 60.0  # seconds of the rig's clock until every resource has been tried once


@asynccontextmanager
async def open_sim(setup: Setup) -> AsyncIterator[Backend]:
    """Run the machine on simulated hardware, connected to the plant."""
    hardware = WatchedSim(World(seed=setup.seed), setup.outputs)
    plant = None if setup.plant is None else LocalPlant(setup.plant(hardware))
    async with _open(setup, hardware, SimBench(hardware), plant) as backend:
        yield backend


@asynccontextmanager
async def open_linux(setup: Setup) -> AsyncIterator[Backend]:
    """Run the machine on the hardware of this computer."""
    async with _open(setup, WatchedLinux(setup.outputs), None, None) as backend:
        yield backend


@asynccontextmanager
async def _open(
    setup: Setup, hardware: WatchedSim | WatchedLinux, bench: Bench | None, plant: PlantLink | None
) -> AsyncIterator[Backend]:
    before, root = structlog.get_config(), logging.getLogger()
    level = root.level
    logs = configure_logs([LogSink(setup.artefacts)])
    try:
        async with trio.open_nursery() as nursery:
            local = LocalMachine(setup, hardware, bench, plant, nursery)
            await local.start()
            yield local
            await local.stop()
    finally:
        setup.unsafe.extend(_unsafe_outputs(setup.outputs, hardware))
        logs.close()
        root.setLevel(level)
        structlog.configure(**before)


def _unsafe_outputs(outputs: Outputs, hardware: WatchedSim | WatchedLinux) -> list[str]:
    """Return what is wrong after the stop: outputs still driven or not at their safe level, devices left over."""
    wrong = outputs.unsafe()
    if isinstance(hardware, SimHardware):
        wrong += [
            f"{state.name} is {state.level:d} after the stop; its safe level is {state.safe:d}"
            for state in hardware.lines.outputs()
            if state.level != state.safe
        ]
        wrong += [f"{device.name} was not removed from the simulation" for device in hardware.world.devices()]
    return wrong


def _registry(models: Sequence[str | type[Resource]]) -> Registry:
    """Return a registry of the built-in models, installed models and those of the test."""
    registry = Registry(
        BUILTIN, offers=lambda: [*installed_models(), *(model for model in models if isinstance(model, str))]
    )
    for cls in models:
        if not isinstance(cls, str):
            if cls.MODEL is None:
                raise MachineError(
                    f"{cls.__name__} has no model",
                    kind=ErrorKind.INVALID,
                    remedy="decorate it with engine.resource.model",
                )
            registry.add(cls.API, cls.MODEL, cls)
    return registry


class LocalMachine:
    """A machine that can be stopped and restarted while the test runs."""

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
        """The machine; None while it is stopped."""
        return self._memory.machine if self._memory is not None else None

    @property
    def client(self) -> ApiClient:
        """A client of the machine. MachineError (UNAVAILABLE) while it is stopped."""
        if self._memory is None:
            raise MachineError("the machine is powered off", kind=ErrorKind.UNAVAILABLE)
        return self._memory.client()

    async def start(self) -> None:
        """Start the machine and wait until every resource is ready.

        MachineError (PRECONDITION) names the resources that are not ready, or the reason why the configuration was
        rejected.
        """
        memory: MemoryMachine = await self._nursery.start(self._run_until_stopped)
        with trio.move_on_after(START_LIMIT) as limit:
            await memory.machine.lifecycle.running.wait()
        not_ready = [
            f"{resource.name} is {resource.state}: {resource.reason}"
            for resource in memory.machine.status().resources
            if resource.state != "ready"
        ]
        if memory.machine.configured.status.rejected:
            not_ready.append(memory.machine.configured.status.rejected)
        if limit.cancelled_caught or not_ready:
            waited = f" within {START_LIMIT:g} s" if limit.cancelled_caught else ""
            raise MachineError(
                f"the machine is not ready{waited}:\n" + "\n".join(not_ready),
                kind=ErrorKind.PRECONDITION,
                remedy="correct its configuration, or what it is connected to",
            )

    async def _run_until_stopped(self, *, task_status: trio.TaskStatus[MemoryMachine]) -> None:
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
        """Stop the machine in order and wait for the end."""
        self._stop.set()
        await self._stopped.wait()

    @property
    def power_loss(self) -> Callable[[], Context] | None:
        """A context that cuts the power of simulated hardware: pins are released, then the machine stops."""
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

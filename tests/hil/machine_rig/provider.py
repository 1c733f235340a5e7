"""`--rig qemu`: machine-server in the guest on real kernel drivers, connected to the plant."""

from __future__ import annotations

import atexit
import copy
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from signal import SIGKILL
from typing import Any, Final

import pytest
import trio

from hal.ports.digital import Line
from hal.sim.faults import FaultPlan
from rig.remote import open_session, wait_ready
from rig.setup import Backend, Setup
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from runtime.server.machine import Machine
from schema.errors import ErrorKind, MachineError
from tests.hil.conftest import why_not
from tests.hil.image.contents import SOURCE
from tests.hil.image.places import BUILD, ROOT
from tests.hil.rig.guest import Guest, open_guest
from tests.hil.rig.kinds import new_machine
from tests.hil.rig.plant import Adapter, Thing, open_plant
from tests.hil.rig.server import Server, open_server
from tests.hil.rig.source import share_source
from tests.hil.rig.vm import VirtualMachine

CHIP: Final = ("pinctrl-bcm2711", 58)  # the GPIO chip of a Raspberry Pi 4 and its lines, here provided by gpio-sim
BUS: Final = "1"  # the bus of its header, here a USB adapter

_kept: dict[str, VirtualMachine] = {}


def _machine() -> VirtualMachine:
    """Return the virtual machine for all tests of this process, which ends with it."""
    if "vm" not in _kept:
        if reason := why_not():
            pytest.skip(reason)
        stack = ExitStack()
        atexit.register(stack.close)
        folder = BUILD / f"share-{os.getpid()}-machine-rig"
        share_source(folder)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        _kept["vm"] = stack.enter_context(new_machine(folder))
    return _kept["vm"]


@asynccontextmanager
async def open_qemu(setup: Setup) -> AsyncIterator[Backend]:
    """Run a machine for one test; the guest keeps running for the next one."""
    async with open_guest(_machine()) as guest:
        zero = await guest.monotonic() - setup.artefacts.recorder.elapsed()
        wires = await open_plant(guest)
        adapter, bank = await wires.i2c_adapter(), await wires.gpio(CHIP[1], label=CHIP[0])
        folder = _in_guest(setup.folder)
        bench = await wires.make(
            "tests.hil.machine_rig.guest_bench:GuestBench", setup.plant_name, folder, setup.seed, BUS, adapter, bank
        )
        async with trio.open_nursery() as nursery:
            machine = GuestMachine(guest, setup, folder, adapter, bench, nursery)
            try:
                await machine.start()
                yield machine
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + 120):
                    await machine.stop()
                    setup.unsafe.extend(f"{line} is still held" for line in await bench.call("left_driven"))
                    await _note_lines(setup, bench, zero)
                    await wires.reset()


async def _note_lines(setup: Setup, bench: Thing, zero: float) -> None:
    """Write the kernel's record of its lines, in order; `zero` is the guest's time at the beginning of the test."""
    for when, line, high in await bench.call("levels"):
        setup.outputs.note(f"{CHIP[0]} line {line}", float(high), at=when - zero)


def _in_guest(folder: Path) -> str:
    return f"{SOURCE}/{folder.relative_to(ROOT)}"


def _placed(document: Mapping[str, Any], bus: str) -> dict[str, Any]:
    """Return the configuration with the bus number of the guest."""
    placed: dict[str, Any] = copy.deepcopy(dict(document))
    for entry in placed.get("components", ()):
        if entry.get("attributes", {}).get("i2c_bus") == BUS:
            entry["attributes"]["i2c_bus"] = bus
    return placed


class GuestMachine:
    """machine-server in the guest, with its bench and its plant."""

    machine: Machine | None = None

    def __init__(
        self, guest: Guest, setup: Setup, folder: str, adapter: Adapter, bench: Thing, nursery: trio.Nursery
    ) -> None:
        self._guest = guest
        self._setup = setup
        self._folder = folder
        self._adapter = adapter
        self._nursery = nursery
        self._client: ApiClient | None = None
        self._server: Server | None = None
        self._power_lost = False
        self._stop, self._stopped = trio.Event(), trio.Event()
        self.bench = GuestFaults(bench, adapter)
        self.plant = GuestPlant(bench)

    @property
    def client(self) -> ApiClient:
        if self._client is None:
            raise MachineError("the machine has no power", kind=ErrorKind.UNAVAILABLE)
        return self._client

    async def start(self) -> None:
        await self._nursery.start(self._live)

    async def stop(self) -> None:
        self._stop.set()
        await self._stopped.wait()

    async def _live(self, *, task_status: trio.TaskStatus[None]) -> None:
        self._stop, self._stopped = trio.Event(), trio.Event()
        models = ",".join(
            model if isinstance(model, str) else f"{model.__module__}:{model.__qualname__}"
            for model in self._setup.models
        )
        env = {"MACHINE_MODELS": models, "PYTHONPATH": f"{SOURCE}:{self._folder}"}
        document = _placed(self._setup.document, self._adapter.bus)
        try:
            async with open_server(self._guest, document, env=env) as self._server:
                async with Channel(self._server.address) as channel:
                    async with open_session(channel) as client:
                        await wait_ready(client, document)
                        self._client = client
                        task_status.started()
                        await self._stop.wait()
                        self._client = None
                    if self._power_lost:  # a heartbeat of the session would fail
                        await self._server.signal(SIGKILL)
                        await self._server.process.wait()
        finally:
            self._client = None
            if self._server is not None:
                self._setup.artefacts.add_log(self._server.log)
            self._stopped.set()

    @asynccontextmanager
    async def power_loss(self) -> AsyncIterator[None]:
        """Kill the process, so that the kernel releases its lines, and start it again at the end."""
        self._power_lost = True
        await self.stop()
        self._power_lost = False
        yield
        await self.start()


class GuestFaults:
    """The faults of the bench in the guest."""

    def __init__(self, bench: Thing, adapter: Adapter) -> None:
        self._bench = bench
        self._adapter = adapter

    async def inject(self, name: str, plan: FaultPlan) -> None:
        await self._bench.call("inject", name, {**asdict(plan), "fault": plan.fault.value if plan.fault else ""})

    async def clear(self, name: str) -> None:
        await self._bench.call("clear", name)

    async def set_plugged(self, name: str, plugged: bool) -> None:
        if name != f"i2c-{BUS}":
            pytest.skip(f"the rig 'qemu' cannot unplug {name!r}")
        if plugged:
            await self._adapter.plug()
        else:
            await self._adapter.unplug()

    async def set_stuck(self, bus: str, stuck: bool) -> None:
        await self._adapter.stall(stuck)

    async def set_short(self, line: Line, level: bool | None) -> None:
        await self._bench.call("short", line.offset, level)


class GuestPlant:
    """The plant in the guest."""

    def __init__(self, bench: Thing) -> None:
        self._bench = bench

    async def get(self, name: str) -> Any:
        return await self._bench.call("get", name)

    async def set(self, name: str, value: Any) -> None:
        await self._bench.call("set", name, value)

    async def call(self, name: str, *arguments: Any) -> Any:
        return await self._bench.call("call", name, list(arguments))

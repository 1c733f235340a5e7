"""The fixture `rig`: a machine under test, and what surrounds it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio

from hal.ports.hardware import Hardware
from hal.sim.world import World
from rpc.api.client import ApiClient
from runtime.machine import Machine
from runtime.resource import Resource
from runtime.rig.channels import Recorder
from runtime.rig.faults import Faults
from runtime.rig.handles import make_handle
from runtime.rig.local import LocalMachine
from runtime.rig.plant import Plant
from runtime.rig.setup import Backend, Setup
from schema.errors import ErrorKind, MachineError

ResourceT = TypeVar("ResourceT", bound=Resource)


class Rig:
    """A machine that runs while a test runs; the same on every kind of rig.

    `kind` is sim, linux, qemu or an address; `faults` and `plant` are what surrounds the machine; `recorder` keeps what
    is measured; `folder` is where the artefacts of this test go.
    """

    def __init__(self, setup: Setup, backend: Backend) -> None:
        self.kind = setup.kind
        self.document = setup.document
        self.recorder: Recorder = setup.artefacts.recorder
        self.folder: Path = setup.artefacts.folder
        self.faults = Faults(backend.bench, setup.kind, backend.power_loss)
        self.plant = Plant(backend.plant, setup.kind, self.recorder)
        self._backend = backend

    def get(self, base: type[ResourceT], name: str) -> ResourceT:
        """The resource called `name` as a `base`: `rig.get(Motor, "left")`. Calls raise MachineError as clients' do."""
        return make_handle(base, name, lambda: self._backend.client, self._note)

    def _note(self, resource: str, method: str, result: Any) -> None:
        what = "" if method == "get_readings" else f" {method.removeprefix('get_')}"
        self.recorder.add_all(f"{resource}{what}", result)

    @property
    def client(self) -> ApiClient:
        """For calls that no handle has, such as those of the machine itself."""
        return self._backend.client

    @property
    def machine(self) -> Machine:
        """The machine itself; the test is skipped if it is in another process."""
        if self._backend.machine is None:
            pytest.skip(f"the machine of the rig {self.kind!r} is not in this process")
        return self._backend.machine

    @property
    def hardware(self) -> Hardware:
        """What its drivers open; the test is skipped if that is in another process."""
        if not isinstance(self._backend, LocalMachine):
            pytest.skip(f"the hardware of the rig {self.kind!r} is not in this process")
        return self._backend.hardware

    @property
    def world(self) -> World:
        """The simulated world; the test is skipped on a rig that has none."""
        world = getattr(self.hardware, "world", None)
        if not isinstance(world, World):
            pytest.skip(f"the rig {self.kind!r} has no simulated world")
        return world

    async def until(
        self, condition: Callable[[], Awaitable[object]], *, within: float, every: float = 0.1, what: str = ""
    ) -> float:
        """Ask every `every` seconds until `condition` holds; how many seconds that took. AssertionError after `within`.

        An UNAVAILABLE error of the condition means not yet.
        """
        begin = trio.current_time()
        last: object = None
        while True:
            try:
                if last := await condition():
                    return trio.current_time() - begin
            except MachineError as error:
                if error.kind is not ErrorKind.UNAVAILABLE:
                    raise
                last = error
            if trio.current_time() - begin >= within:
                raise AssertionError(f"{what or 'the condition'} did not hold within {within:g} s; last: {last!r}")
            await trio.sleep(every)

    async def sample(self, every: float) -> None:
        """Record the readings of all sensors and what the plant has to show, each `every` seconds, until cancelled."""
        from runtime.components.sensor import Sensor

        names = [
            str(entry["name"])
            for entry in self.document.get("components", ())
            if isinstance(entry, Mapping) and entry.get("api") == str(Sensor.API)
        ]
        sensors = {name: self.get(Sensor, name) for name in names}
        while True:
            for name, sensor in sensors.items():
                try:
                    await sensor.get_readings()
                except MachineError:
                    self.recorder.gap(name)
            await self.plant.record()
            await trio.sleep(every)


@asynccontextmanager
async def running(setup: Setup, backend: Backend, sample: float) -> AsyncIterator[Rig]:
    """The rig of a test, with its sensors sampled each `sample` seconds if that is not 0."""
    rig = Rig(setup, backend)
    async with trio.open_nursery() as nursery:
        if sample:
            nursery.start_soon(rig.sample, sample)
        yield rig
        nursery.cancel_scope.cancel()

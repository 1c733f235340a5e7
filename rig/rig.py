"""The fixture `rig`: a machine under test and its environment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio

from engine import Resource
from hal import Hardware
from hal.sim import World
from rig.faults import Faults
from rig.handles import make_handle
from rig.local import LocalMachine
from rig.plant import Plant
from rig.setup import Backend, Setup
from rpc.api import ApiClient
from runtime.server import Machine
from schema import ErrorKind, MachineError
from support import Recorder

ResourceT = TypeVar("ResourceT", bound=Resource)


class Rig:
    """A machine that runs for the duration of a test, with the same interface on every kind of rig.

    `kind` is sim, linux, qemu or an address; `faults` and `plant` are the environment of the machine; `recorder` stores
    measurements; `folder` receives the artefacts of the test.
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
        """Return a handle of the resource `name`: `rig.get(Motor, "left")`. Calls raise MachineError as for clients."""
        return make_handle(base, name, lambda: self._backend.client, self._note)

    def _note(self, resource: str, method: str, result: Any) -> None:
        suffix = "" if method == "get_readings" else f" {method.removeprefix('get_')}"
        self.recorder.add_all(f"{resource}{suffix}", result)

    @property
    def client(self) -> ApiClient:
        """A client for calls that handles do not offer, such as those of the machine itself."""
        return self._backend.client

    @property
    def machine(self) -> Machine:
        """The machine object. Skips the test if the machine is in another process."""
        if self._backend.machine is None:
            pytest.skip(f"the machine of the rig {self.kind!r} is not in this process")
        return self._backend.machine

    @property
    def hardware(self) -> Hardware:
        """The hardware that drivers open. Skips the test if it is in another process."""
        if not isinstance(self._backend, LocalMachine):
            pytest.skip(f"the hardware of the rig {self.kind!r} is not in this process")
        return self._backend.hardware

    @property
    def world(self) -> World:
        """The simulated world. Skips the test on a rig without simulation."""
        world = getattr(self.hardware, "world", None)
        if not isinstance(world, World):
            pytest.skip(f"the rig {self.kind!r} has no simulated world")
        return world

    async def until(
        self, condition: Callable[[], Awaitable[object]], *, within: float, every: float = 0.1, what: str = ""
    ) -> float:
        """Poll `condition` every `every` seconds until it is true; return the elapsed seconds.

        AssertionError after `within` seconds. An UNAVAILABLE error raised by `condition` counts as false.
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
        """Record the readings of all sensors and the plant's RECORDED values every `every` seconds until cancelled."""
        from engine import Sensor

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
    """Provide the rig of a test; sample its sensors every `sample` seconds unless that is 0."""
    rig = Rig(setup, backend)
    async with trio.open_nursery() as nursery:
        if sample:
            nursery.start_soon(rig.sample, sample)
        yield rig
        nursery.cancel_scope.cancel()

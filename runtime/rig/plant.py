"""The plant: what the machine moves, heats and measures, as a model beside the simulated hardware.

A plant is a class that is given the simulated hardware: it attaches chips to buses and watches pins. Tests reach its
attributes and methods by name, because on a rig in another computer it lives there. `RECORDED`, if it has that, names
the attributes that are sampled together with the machine's sensors.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

import pytest
import trio

from hal.sim.hardware import SimHardware
from runtime.rig.channels import Recorder

PlantClass = Callable[[SimHardware], Any]


class PlantLink(Protocol):
    """The way to a plant, here or elsewhere."""

    async def get(self, name: str) -> Any:
        """An attribute now."""

    async def set(self, name: str, value: Any) -> None:
        """Change an attribute."""

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call a method."""


class Plant:
    """What tests have as `rig.plant`. On a rig without a plant model, using it skips the test."""

    def __init__(self, link: PlantLink | None, kind: str, recorder: Recorder) -> None:
        self._link = link
        self._kind = kind
        self._recorder = recorder
        self._recorded: tuple[str, ...] | None = None

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self._link is not None

    def _reach(self) -> PlantLink:
        if self._link is None:
            pytest.skip(f"the rig {self._kind!r} has no plant model here")
        return self._link

    async def get(self, name: str) -> Any:
        """An attribute now; numbers are recorded as a channel of the plant."""
        value = await self._reach().get(name)
        self._recorder.add_all(f"plant {name}", value)
        return value

    async def record(self) -> None:
        """Sample what the plant names in RECORDED."""
        if self._link is None:
            return
        if self._recorded is None:
            try:
                self._recorded = tuple(await self._link.get("RECORDED"))
            except AttributeError:
                self._recorded = ()
        for name in self._recorded:
            await self.get(name)

    async def set(self, name: str, value: Any) -> None:
        """Change an attribute."""
        await self._reach().set(name, value)

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call a method; what it takes and gives are JSON's types."""
        return await self._reach().call(name, *arguments)


class LocalPlant:
    """A plant in this process."""

    def __init__(self, model: Any) -> None:
        self.model = model

    async def get(self, name: str) -> Any:
        """An attribute now."""
        await trio.lowlevel.checkpoint()
        return getattr(self.model, _public(name))

    async def set(self, name: str, value: Any) -> None:
        """Change an attribute that is there; AttributeError otherwise."""
        await trio.lowlevel.checkpoint()
        getattr(self.model, _public(name))
        setattr(self.model, name, value)

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call a method."""
        await trio.lowlevel.checkpoint()
        return getattr(self.model, _public(name))(*arguments)


def _public(name: str) -> str:
    if name.startswith("_"):
        raise AttributeError(f"{name} is not for tests")
    return name


def load_plant(spec: str | PlantClass | None) -> PlantClass | None:
    """The class that `module:Class` names, or that is given."""
    if not isinstance(spec, str):
        return spec
    module, colon, name = spec.partition(":")
    if not colon:
        raise ValueError(f"plant {spec!r}: write module:Class")
    found: PlantClass = getattr(importlib.import_module(module), name)
    return found

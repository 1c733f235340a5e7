"""The plant: a model of what the machine moves, heats and measures, connected to the simulated hardware.

A plant is a class that receives the simulated hardware, attaches chips to buses and watches pins. Tests access its
attributes and methods by name, because the plant of a remote rig runs on that computer. The optional `RECORDED` names
the attributes to sample together with the sensors of the machine.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

import pytest
import trio

from hal.sim import SimHardware
from support import Recorder

PlantClass = Callable[[SimHardware], Any]


class PlantLink(Protocol):
    """Access to a local or remote plant."""

    async def get(self, name: str) -> Any:
        """Return the current value of an attribute."""

    async def set(self, name: str, value: Any) -> None:
        """Change an attribute."""

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call a method."""


class Plant:
    """The plant as tests use it in `rig.plant`. Using it on a rig without a plant model skips the test."""

    def __init__(self, link: PlantLink | None, kind: str, recorder: Recorder) -> None:
        self._link = link
        self._kind = kind
        self._recorder = recorder
        self._recorded: tuple[str, ...] | None = None

    @property
    def exists(self) -> bool:
        """Whether the rig has a plant model."""
        return self._link is not None

    def _require_link(self) -> PlantLink:
        if self._link is None:
            pytest.skip(f"the rig {self._kind!r} has no plant model")
        return self._link

    async def get(self, name: str) -> Any:
        """Return the current value of an attribute; numbers are recorded as a channel of the plant."""
        value = await self._require_link().get(name)
        self._recorder.add_all(f"plant {name}", value)
        return value

    async def record(self) -> None:
        """Sample the attributes that the plant names in RECORDED; do nothing without a plant."""
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
        await self._require_link().set(name, value)

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call a method. Arguments and result must be JSON types."""
        return await self._require_link().call(name, *arguments)


class LocalPlant:
    """A plant in this process."""

    def __init__(self, model: Any) -> None:
        self.model = model

    async def get(self, name: str) -> Any:
        """Return the current value of an attribute."""
        await trio.lowlevel.checkpoint()
        return getattr(self.model, _public(name))

    async def set(self, name: str, value: Any) -> None:
        """Change an existing attribute. AttributeError if there is none of that name."""
        await trio.lowlevel.checkpoint()
        getattr(self.model, _public(name))
        setattr(self.model, name, value)

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call a method."""
        await trio.lowlevel.checkpoint()
        return getattr(self.model, _public(name))(*arguments)


def _public(name: str) -> str:
    if name.startswith("_"):
        raise AttributeError(f"{name} is private: tests cannot use it")
    return name


def load_plant(spec: str | PlantClass | None) -> PlantClass | None:
    """Return the class named by `module:Class`; return other values unchanged."""
    if not isinstance(spec, str):
        return spec
    module, colon, name = spec.partition(":")
    if not colon:
        raise ValueError(f"plant {spec!r} is not of the form module:Class")
    plant_class: PlantClass = getattr(importlib.import_module(module), name)
    return plant_class

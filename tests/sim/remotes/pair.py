"""A machine with a remote, and helpers that query both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio

from runtime.parts.remotes.life import ANSWER_LIMIT
from runtime.server.memory import MemoryMachine
from schema.errors import MachineError
from tests.sim.remotes.network import (
    ROBOT,
    Gauge,
    Network,
    Wheel,
    document,
    gauge,
    motor,
    open_network,
)

HEAR = ANSWER_LIMIT + 1.0  # seconds until a hung remote counts as lost: one beat and one question


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    Wheel.events.clear()
    Gauge.broken.clear()
    async with open_network() as opened:
        yield opened


def happened(event: str, name: str) -> list[float]:
    return [time for time, what, who in Wheel.events if (what, who) == (event, name)]


async def names(memory: MemoryMachine) -> list[str]:
    resources: list[str] = await memory.client().call(ROBOT, "", "resource_names")
    return sorted(name.rpartition("/")[2] for name in resources)


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return once `condition` is true; polling is free in virtual time."""
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.05)


def ready(memory: MemoryMachine, *expected: str) -> Callable[[], bool]:
    return lambda: all(any(full.endswith(f"/{name}") for full in memory.machine.roster.hosts) for name in expected)


def status(memory: MemoryMachine, name: str) -> Any:
    everything = (*memory.machine.status().resources, *memory.machine.status().internal)
    return next(resource for resource in everything if resource.name.endswith(f"/{name}"))


async def refused(memory: MemoryMachine, api: str, name: str, method: str, **arguments: Any) -> MachineError:
    with pytest.raises(MachineError) as caught:
        await memory.client().call(api, name, method, **arguments)
    return caught.value


PARENT = document(motor("own"), gauge("near", needs=["left"]), remotes={"pi": "pi"})
PI = document(motor("left"), gauge("air", speed=1.0))


async def pair(network: Network) -> tuple[MemoryMachine, MemoryMachine]:
    pi = await network.start("pi", PI)
    parent = await network.start("parent", PARENT)
    await until(ready(parent, "pi:left", "pi:air", "near"))
    return parent, pi

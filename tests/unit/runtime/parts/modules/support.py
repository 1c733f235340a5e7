"""A machine in memory with modules in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import trio

from engine.options import Options
from runtime.parts.modules.manager import Modules
from runtime.parts.modules.memory import Behaviour, MemoryProcess, MemoryProcesses
from runtime.server.memory import MemoryMachine, open_machine

SENSOR = "rdk:component:sensor"
ROBOT = "viam.robot.v1.RobotService"


def entry(name: str = "demo", **keys: Any) -> dict[str, Any]:
    return {"name": name, "executable_path": f"/memory/{name}", **keys}


def sensor(name: str, model: str = "acme:memory:sensor", **keys: Any) -> dict[str, Any]:
    return {"name": name, "api": SENSOR, "model": model, **keys}


@asynccontextmanager
async def machine(
    document: Mapping[str, Any],
    behave: Callable[[str], Behaviour] = lambda name: Behaviour(),
    environment: Mapping[str, str] | None = None,
    options: Options | None = None,
) -> AsyncIterator[tuple[MemoryMachine, MemoryProcesses]]:
    """Run a machine and its module processes; data folders are below MACHINE_HOME of `environment`."""
    processes = MemoryProcesses(behave)
    async with open_machine({}, options=options) as memory:
        await memory.machine.lifecycle.running.wait()
        around = replace(memory.configuration.context, environment=environment or {})
        memory.machine.parts.present["modules"] = Modules(around, processes)
        memory.write(document)
        yield memory, processes
    assert not processes.running, "a module outlived its machine"


async def until(what: Callable[[], bool], seconds: float = 600) -> None:
    """Wait in virtual time until the condition holds."""
    with trio.fail_after(seconds):
        while not what():  # noqa: ASYNC110 - virtual time costs nothing
            await trio.sleep(0.1)


def ready(memory: MemoryMachine, *names: str) -> bool:
    return all(f"{SENSOR}/{name}" in memory.machine.roster.hosts for name in names)


def process_of(processes: MemoryProcesses, name: str = "demo") -> MemoryProcess:
    (process,) = (
        candidate for address, candidate in processes.running.items() if address.startswith(f"/memory/{name}-")
    )
    return process


def reason(memory: MemoryMachine, name: str) -> str:
    (resource,) = (status for status in memory.machine.status().resources if status.name == f"{SENSOR}/{name}")
    return resource.reason

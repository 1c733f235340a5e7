"""Helpers for tests of modules."""

from __future__ import annotations

import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from rpc.api.client import ApiClient
from schema.errors import MachineError
from tests.e2e.server import process
from tests.e2e.server.process import Server

FIXTURES: Final = Path(__file__).parent / "fixtures"
ROBOT: Final = "viam.robot.v1.RobotService"
SENSOR, MOTOR, GENERIC = "rdk:component:sensor", "rdk:component:motor", "rdk:component:generic"
PLAIN: Final = {"a": 1, "b": 2, "c": 3}  # readings of a fake sensor


def program(folder: Path, name: str = "module", *, fixture: str = "sdk_module.py") -> str:
    """Write an executable that runs a fixture with this Python; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {FIXTURES / fixture} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def component(name: str, api: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": api, "model": model, "attributes": attributes}


@asynccontextmanager
async def server(*arguments: Any, **options: Any) -> AsyncIterator[Server]:
    """Run a server like `process.server`, but stop it at the end: a killed server would leave its modules running."""
    async with process.server(*arguments, **options) as running:
        try:
            yield running
        finally:
            with trio.move_on_after(45, shield=True):
                if running.process.poll() is None:
                    running.process.terminate()
                await running.process.wait()


@asynccontextmanager
async def machine(
    folder: Path, document: dict[str, Any], *options: str, running: bool = True, **env: str
) -> AsyncIterator[tuple[Server, ApiClient]]:
    """Run a machine-server whose files are all in `folder`; yield it and a client."""
    environment = {"MACHINE_HOME": str(folder / "home"), **env}
    async with server(folder, document, *options, running=running, env=environment) as running_server:
        async with running_server.client() as client:
            yield running_server, client


async def until_ready(client: ApiClient, *names: str, seconds: float = 30) -> dict[str, str]:
    """Wait until these resources are ready; if that takes too long, fail with the reasons of the others."""
    errors: dict[str, str] = {}
    with trio.move_on_after(seconds):
        while True:
            status = await client.call(ROBOT, "", "get_machine_status")
            states = {resource["name"].rpartition("/")[2]: resource for resource in status["resources"]}
            errors = {name: state["error"] for name, state in states.items() if state["error"]}
            if all(name in states and states[name]["state"].lower().endswith("ready") for name in names):
                return errors
            await trio.sleep(0.05)  # the published API has no stream of states
    raise AssertionError(f"not ready: {errors}")


async def module_state(client: ApiClient, name: str = "demo") -> dict[str, Any]:
    """Return the state of a module from GetMachineStatus."""
    status = await client.call(ROBOT, "", "get_machine_status")
    state: dict[str, Any] = next(module for module in status["modules"] if module["module_name"] == name)
    return state


async def until(what: Callable[[], Awaitable[bool]], *, seconds: float = 30, message: str = "") -> None:
    """Repeat a check until it is true; a MachineError counts as false."""
    with trio.move_on_after(seconds):
        while True:
            try:
                if await what():
                    return
            except MachineError:
                pass
            await trio.sleep(0.05)  # the published API has no events for it
    raise AssertionError(message or f"not within {seconds:g} s")


async def readings(client: ApiClient, name: str) -> Any:
    return await client.call(SENSOR, name, "get_readings")


async def pid_of(client: ApiClient, name: str = "air") -> int:
    """Return the process id of the module that provides a thermometer."""
    return int((await readings(client, name))["pid"])

"""The same module, written with our API and with the official SDK, is the same to clients."""

from __future__ import annotations

import signal
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.server.process import Server, server

PROGRAMS = {
    "own": Path(__file__).parent / "fixtures" / "own_module.py",
    "sdk": Path(__file__).parents[1] / "modules" / "fixtures" / "sdk_module.py",
}
SENSOR, MOTOR, GENERIC = "rdk:component:sensor", "rdk:component:motor", "rdk:component:generic"
ROBOT = "viam.robot.v1.RobotService"


@pytest.fixture(params=sorted(PROGRAMS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def program(folder: Path, kind: str) -> str:
    path = folder / "module"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {PROGRAMS[kind]} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def component(name: str, api: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": api, "model": model, "attributes": attributes}


def document(folder: Path, kind: str, *components: dict[str, Any], **module: Any) -> dict[str, Any]:
    return {
        "modules": [{"name": "demo", "executable_path": program(folder, kind), **module}],
        "components": [component("plain", SENSOR, "fake"), *components],
    }


@pytest.fixture
async def machine(tmp_path: Path, kind: str) -> AsyncIterator[tuple[Server, ApiClient]]:
    expected = document(
        tmp_path,
        kind,
        component("air", SENSOR, "acme:demo:thermometer", offset=1),
        component("mean", GENERIC, "acme:demo:average", sensor="plain"),
        component("own-mean", GENERIC, "acme:demo:average", sensor="air"),
        component("drive", MOTOR, "acme:demo:drive"),
    )
    async with server(tmp_path, expected, running=True) as running, running.client() as client:
        await until_ready(client, "air", "mean", "own-mean", "drive", "plain")
        yield running, client


async def states(client: ApiClient) -> dict[str, Any]:
    status = await client.call(ROBOT, "", "get_machine_status")
    return {resource["name"].rpartition("/")[2]: resource for resource in status["resources"]}


async def until_ready(client: ApiClient, *names: str) -> None:
    values: dict[str, Any] = {}
    with trio.move_on_after(40):
        while True:
            values = await states(client)
            if all(values[name]["state"].lower().endswith("ready") for name in names):
                return
            await trio.sleep(0.05)
    raise AssertionError({name: first["error"] for name, first in values.items()})


async def until_said(running: Server, *words: str) -> None:
    with trio.move_on_after(60):
        while not all(word in running.log() for word in words):  # noqa: ASYNC110 - the log is a file
            await trio.sleep(0.02)
    assert all(word in running.log() for word in words), running.log()


async def test_resources_answer(machine: tuple[Server, ApiClient]) -> None:
    running, client = machine
    assert (await client.call(SENSOR, "air", "get_readings"))["temperature_c"] == 21.5
    assert await client.call(SENSOR, "air", "do_command", command={"a": [1, "b"]}) == {"echo": {"a": [1, "b"]}}
    await client.call(SENSOR, "air", "do_command", command={"do": "print"})
    await until_said(running, "this is said on stdout", "this is said on stderr", "asked for readings")
    models = await client.call(ROBOT, "", "get_models_from_modules")
    assert {model["model"] for model in models} == {f"acme:demo:{name}" for name in ("thermometer", "average", "drive")}


async def test_dependencies_of_the_machine_and_of_the_module(machine: tuple[Server, ApiClient]) -> None:
    _, client = machine
    assert await client.call(GENERIC, "mean", "do_command", command={}) == {"names": ["a", "b", "c"]}
    assert await client.call(GENERIC, "own-mean", "do_command", command={}) == {"names": ["pid", "temperature_c"]}


async def test_moving_resources_are_stopped(machine: tuple[Server, ApiClient]) -> None:
    _, client = machine
    await client.call(MOTOR, "drive", "set_power", power_pct=0.5)
    assert await client.call(MOTOR, "drive", "is_powered") == {"is_on": True, "power_pct": 0.5}
    assert await client.call(MOTOR, "drive", "is_moving") is True
    await client.call(ROBOT, "", "stop_all")
    assert (await client.call(MOTOR, "drive", "is_powered"))["is_on"] is False
    assert await client.call(MOTOR, "drive", "get_position") == 1.5
    assert await client.call(MOTOR, "drive", "get_properties") in ({"position_reporting": True}, True)


async def test_a_deadline_ends_the_call_in_the_module(machine: tuple[Server, ApiClient]) -> None:
    _, client = machine
    with trio.move_on_after(0.3) as limit:
        await client.call(MOTOR, "drive", "go_for", rpm=1, revolutions=10)
    assert limit.cancelled_caught
    with trio.fail_after(30):
        assert await client.call(MOTOR, "drive", "get_position") == 1.5


async def test_unknown_resources_and_methods_that_are_not_implemented(machine: tuple[Server, ApiClient]) -> None:
    _, client = machine
    with pytest.raises(MachineError) as caught:
        await client.call(SENSOR, "nowhere", "get_readings")
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_crash_and_a_restart(machine: tuple[Server, ApiClient]) -> None:
    _, client = machine
    first = int((await client.call(SENSOR, "air", "get_readings"))["pid"])
    with pytest.raises(MachineError) as caught:
        await client.call(SENSOR, "air", "do_command", command={"do": "crash"})
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert await client.call(SENSOR, "plain", "get_readings") == {"a": 1, "b": 2, "c": 3}
    with trio.fail_after(40):
        while True:
            try:
                if (await client.call(SENSOR, "air", "get_readings"))["pid"] != first:
                    break
            except MachineError:
                pass
            await trio.sleep(0.05)
    await until_ready(client, "air", "mean", "own-mean", "drive")
    assert not psutil.pid_exists(first)


async def test_invalid_and_changed_configurations(machine: tuple[Server, ApiClient], tmp_path: Path, kind: str) -> None:
    running, client = machine
    pid = (await client.call(SENSOR, "air", "get_readings"))["pid"]
    changed = document(
        tmp_path,
        kind,
        component("air", SENSOR, "acme:demo:thermometer", offset=-5),
        component("more", SENSOR, "acme:demo:thermometer"),
        component("bad", SENSOR, "acme:demo:thermometer", offset="wrong"),
        component("broken", SENSOR, "acme:demo:thermometer", fail=True),
    )
    running.write({**changed, "network": {"bind_address": "localhost:0"}})  # unchanged, so that the port stays open
    values: dict[str, Any] = {}
    with trio.move_on_after(30):
        while not (
            "more" in values and values["more"]["state"].lower().endswith("ready") and values["broken"]["error"]
        ):
            await trio.sleep(0.05)
            values = await states(client)
    assert (await client.call(SENSOR, "more", "get_readings"))["pid"] == pid, "the module was not restarted"
    await until_ready(client, "air")
    assert (await client.call(SENSOR, "air", "get_readings"))["temperature_c"] == 15.5
    assert "components.3.attributes" in values["bad"]["error"]
    assert "offset must be a number" in values["bad"]["error"]
    assert "the thermometer is broken" in values["broken"]["error"]
    assert "drive" not in values


async def test_an_orderly_stop_leaves_nothing(tmp_path: Path, kind: str) -> None:
    await left_behind(tmp_path, kind, signal.SIGTERM)


@pytest.mark.parametrize("wrapped", [False, True], ids=["itself", "by a shell"])
async def test_a_module_ends_with_a_killed_server(tmp_path: Path, wrapped: bool) -> None:
    await left_behind(tmp_path, "own", signal.SIGKILL, wrapped=wrapped)  # a module on the SDK does not


async def left_behind(folder: Path, kind: str, number: signal.Signals, *, wrapped: bool = False) -> None:
    expected = document(folder, kind, component("air", SENSOR, "acme:demo:thermometer"))
    if wrapped:  # a shell remains between server and module
        (folder / "module").write_text(f'#!/bin/sh\n{sys.executable} {PROGRAMS[kind]} "$@"\nexit $?\n')
    environment = {"TMPDIR": str(folder)}
    async with server(folder, expected, running=True, env=environment) as running, running.client() as client:
        await until_ready(client, "air")
        pid = int((await client.call(SENSOR, "air", "get_readings"))["pid"])
        assert await running.stop(number) == (0 if number == signal.SIGTERM else -number)
    with trio.fail_after(30):
        while psutil.pid_exists(pid):  # noqa: ASYNC110 - not a child of ours
            await trio.sleep(0.02)
    assert not list(folder.glob("**/demo-*.sock"))  # noqa: ASYNC240

"""Unmodified modules on the official Python SDK, as children of a real machine-server."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.modules.support import GENERIC, MOTOR, ROBOT, SENSOR, component, program, server, until_ready
from tests.e2e.server.process import Server


def document(folder: Path, *components: dict[str, Any], env: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "modules": [{"name": "demo", "executable_path": program(folder), "env": env or {}}],
        "components": [component("plain", SENSOR, "fake"), *components],
    }


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[tuple[Server, ApiClient]]:
    expected = document(
        tmp_path,
        component("air", SENSOR, "acme:demo:thermometer", offset=1),
        component("mean", GENERIC, "acme:demo:average", sensor="plain"),
        component("drive", MOTOR, "acme:demo:drive"),
    )
    home = {"MACHINE_HOME": str(tmp_path / "home")}
    async with server(tmp_path, expected, running=True, env=home) as running, running.client() as client:
        yield running, client


async def until_another(client: ApiClient, pid: float) -> None:
    """Wait until `air` is served by a process other than `pid`: the end of the module is noticed moments later."""
    with trio.fail_after(30):
        while True:
            try:
                if (await client.call(SENSOR, "air", "get_readings"))["pid"] != pid:
                    return
            except MachineError:
                pass
            await trio.sleep(0.05)


async def test_resources_of_a_module_answer_like_others(machine: tuple[Server, ApiClient]) -> None:
    running, client = machine
    await until_ready(client, "air", "mean", "drive", "plain")
    readings = await client.call(SENSOR, "air", "get_readings")
    assert readings["temperature_c"] == 21.5
    assert await client.call(GENERIC, "mean", "do_command", command={}) == {"names": ["a", "b", "c"]}
    await client.call(MOTOR, "drive", "set_power", power_pct=0.5)
    assert await client.call(MOTOR, "drive", "is_powered") == {"is_on": True, "power_pct": 0.5}
    await client.call(ROBOT, "", "stop_all")
    assert (await client.call(MOTOR, "drive", "is_powered"))["is_on"] is False
    models = await client.call(ROBOT, "", "get_models_from_modules")
    assert {model["model"] for model in models} == {"acme:demo:thermometer", "acme:demo:average", "acme:demo:drive"}
    await client.call(SENSOR, "air", "do_command", command={"do": "print"})
    with trio.fail_after(30):
        while "this is said on stdout" not in running.log() or "asked for readings" not in running.log():
            await trio.sleep(0.02)
    assert "rdk.modmanager.demo.StdOut" in running.log()


async def test_a_module_that_logs_from_a_thread_loses_no_call(machine: tuple[Server, ApiClient]) -> None:
    """The SDK's log messages and calls share a connection and can overtake each other. SDK_CALLS: number of calls.

    A lost call ends with DEADLINE_EXCEEDED in the module. Conflicts between the SDK's two threads are counted, because
    no server can mend them: the SDK sends nothing, or ends the connection.
    """
    running, client = machine
    await until_ready(client, "mean", "plain")
    calls, clashes = int(os.environ.get("SDK_CALLS", "400")), 0
    for _ in range(calls // 200):
        with trio.fail_after(60):
            answer = await client.call(GENERIC, "mean", "do_command", command={"calls": 200})
        assert answer["names"] == ["a", "b", "c"]
        clashes += int(answer["clashes"])
    print(f"{calls} calls, {clashes} lost by the SDK")
    if clashes:
        print(running.log()[-5000:])
    assert clashes <= calls / 100


async def test_a_crash_takes_only_its_resources_and_they_come_back(machine: tuple[Server, ApiClient]) -> None:
    _, client = machine
    await until_ready(client, "air", "mean")
    first = (await client.call(SENSOR, "air", "get_readings"))["pid"]
    with pytest.raises(MachineError) as caught:
        await client.call(SENSOR, "air", "do_command", command={"do": "crash"})
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert await client.call(SENSOR, "plain", "get_readings") == {"a": 1, "b": 2, "c": 3}
    await until_another(client, first)
    await until_ready(client, "air", "mean", "drive")
    assert not psutil.pid_exists(int(first))


async def test_a_hanging_module_delays_no_other_module(machine: tuple[Server, ApiClient]) -> None:
    _, client = machine
    await until_ready(client, "air")
    pid = int((await client.call(SENSOR, "air", "get_readings"))["pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        with trio.move_on_after(1) as limit:
            await client.call(SENSOR, "air", "get_readings")
        assert limit.cancelled_caught
        with trio.fail_after(30):
            for _ in range(20):
                await client.call(SENSOR, "plain", "get_readings")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (await client.call(SENSOR, "air", "get_readings"))["temperature_c"] == 21.5


async def test_a_client_may_restart_it(machine: tuple[Server, ApiClient]) -> None:
    _, client = machine
    await until_ready(client, "air")
    first = (await client.call(SENSOR, "air", "get_readings"))["pid"]
    await client.call(ROBOT, "", "restart_module", module_name="demo")
    await until_another(client, first)
    with pytest.raises(MachineError) as caught:
        await client.call(ROBOT, "", "restart_module", module_name="other")
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_no_process_is_left_when_the_server_stops(tmp_path: Path) -> None:
    expected = document(tmp_path, component("air", SENSOR, "acme:demo:thermometer"))
    home = tmp_path / "home"
    environment = {"MACHINE_HOME": str(home), "TMPDIR": str(tmp_path)}
    async with server(tmp_path, expected, running=True, env=environment) as running, running.client() as client:
        await until_ready(client, "air")
        pid = int((await client.call(SENSOR, "air", "get_readings"))["pid"])
        assert await running.stop() == 0
    assert not psutil.pid_exists(pid)
    assert not list(tmp_path.glob("machine-module-*"))
    assert (home / "module-data" / "local" / "demo").is_dir()


async def test_the_document_changes_while_it_runs(machine: tuple[Server, ApiClient], tmp_path: Path) -> None:
    running, client = machine
    await until_ready(client, "air")
    pid = (await client.call(SENSOR, "air", "get_readings"))["pid"]
    network = {"network": {"bind_address": "localhost:0"}}  # unchanged, so that the port stays open
    changed = document(
        tmp_path,
        component("air", SENSOR, "acme:demo:thermometer", offset=-5),
        component("more", SENSOR, "acme:demo:thermometer"),
        component("bad", SENSOR, "acme:demo:thermometer", offset="wrong"),
        component("broken", SENSOR, "acme:demo:thermometer", fail=True),
    )
    running.write({**changed, **network})
    with trio.fail_after(30):
        while True:
            try:
                readings = await client.call(SENSOR, "more", "get_readings")
                break
            except MachineError:
                await trio.sleep(0.05)
    assert readings["pid"] == pid, "the module was not restarted"
    await until_ready(client, "air")
    assert (await client.call(SENSOR, "air", "get_readings"))["temperature_c"] == 15.5
    status = await client.call(ROBOT, "", "get_machine_status")
    errors = {resource["name"].rpartition("/")[2]: resource["error"] for resource in status["resources"]}
    assert "components.3.attributes" in errors["bad"]
    assert "offset must be a number" in errors["bad"]
    assert "the thermometer is broken" in errors["broken"]
    assert "mean" not in errors
    assert "drive" not in errors


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({"FAIL_START": "1"}, "demo ended with status 3; its last output: no licence for this computer"),
        ({"SLOW_START": "60"}, "demo (starting)"),
    ],
    ids=["exits", "slow"],
)
async def test_a_module_that_does_not_start_is_reported_and_affects_no_other(
    tmp_path: Path, env: dict[str, str], reason: str
) -> None:
    expected = document(tmp_path, component("air", SENSOR, "acme:demo:thermometer"), env=env)
    async with server(tmp_path, expected, env={"MACHINE_HOME": str(tmp_path)}) as running, running.client() as client:
        await until_ready(client, "plain")
        with trio.fail_after(30):
            while True:
                with pytest.raises(MachineError) as caught:
                    await client.call(SENSOR, "air", "get_readings")
                if reason in str(caught.value):
                    break
                await trio.sleep(0.05)
        assert await client.call(SENSOR, "plain", "get_readings") == {"a": 1, "b": 2, "c": 3}


async def test_garbage_on_stdout_is_only_logged(tmp_path: Path) -> None:
    expected = document(tmp_path, component("air", SENSOR, "acme:demo:thermometer"), env={"GARBAGE": "1"})
    async with server(tmp_path, expected, env={"MACHINE_HOME": str(tmp_path)}) as running, running.client() as client:
        await until_ready(client, "air")


@pytest.mark.parametrize(
    ("options", "path", "reason"),
    [
        ((), "nothing", "absent (modules.0.executable_path: there is no such file: correct the path)"),
        (("-untrusted-env",), "module", "runs a program that the configuration names, which -untrusted-env forbids"),
    ],
    ids=["absent", "untrusted"],
)
async def test_resources_name_a_module_that_cannot_run_as_the_reason(
    tmp_path: Path, options: tuple[str, ...], path: str, reason: str
) -> None:
    expected = document(tmp_path, component("air", SENSOR, "acme:demo:thermometer"))
    expected["modules"] = [{"name": "absent", "executable_path": str(tmp_path / path)}]
    async with server(tmp_path, expected, *options, running=True, env={"MACHINE_HOME": str(tmp_path)}) as running:
        async with running.client() as client:
            await until_ready(client, "plain")
            with pytest.raises(MachineError) as caught:
                await client.call(SENSOR, "air", "get_readings")
            assert reason in str(caught.value)

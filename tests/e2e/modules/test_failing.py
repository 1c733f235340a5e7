"""Modules that fail in different ways: the machine's report, and that no other resource is affected."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.modules.support import (
    PLAIN,
    SENSOR,
    component,
    machine,
    module_state,
    pid_of,
    program,
    readings,
    until,
    until_ready,
)

AIR = component("air", SENSOR, "acme:demo:thermometer")


def document(folder: Path, *components: dict[str, Any], env: dict[str, str] | None = None, **entry: Any) -> Any:
    return {
        "modules": [{"name": "demo", "executable_path": program(folder), "env": env or {}, **entry}],
        "components": [component("plain", SENSOR, "fake"), *components],
    }


async def reason_of(client: ApiClient, name: str) -> str:
    with pytest.raises(MachineError) as caught:
        await readings(client, name)
    return str(caught.value)


async def says(client: ApiClient, *words: str, name: str = "air") -> str:
    """Wait until the error of a resource has these words, while another resource answers."""
    said = ""

    async def said_so() -> bool:
        nonlocal said
        assert await readings(client, "plain") == PLAIN
        said = await reason_of(client, name)
        return all(word in said for word in words)

    await until(said_so, seconds=60, message=f"nothing says {words}")
    return said


@pytest.mark.parametrize(
    ("env", "words", "trouble"),
    [
        ({"LIE": "never"}, ["demo (starting)"], "starting: it reports that it is not ready yet"),
        ({"GARBAGE": "socket"}, ["demo (starting)"], "starting: "),
        ({"LIE": "api"}, ["demo (", "not a name"], "not a name"),
        ({"EXIT_WITHIN": "0 0"}, ["demo ended with status 7"], "demo ended with status 7"),
    ],
    ids=["never-ready", "garbage-on-the-socket", "api-that-is-none", "exits"],
)
async def test_a_module_that_never_becomes_ready(
    tmp_path: Path, env: dict[str, str], words: list[str], trouble: str
) -> None:
    async with machine(tmp_path, document(tmp_path, AIR, env=env), running=False) as (server, client):
        await says(client, *words)

        async def reported() -> bool:
            state = await module_state(client)
            return state["state"].lower() in ("starting", "unhealthy") and trouble in state["error"]

        await until(reported, message=f"nothing says {trouble}")
        assert await server.stop() == 0
        assert not psutil.pid_exists(server.process.pid)


async def test_a_start_that_takes_too_long_is_explained(tmp_path: Path) -> None:
    expected = document(tmp_path, AIR, env={"LIE": "never"})
    said = ""
    for seconds in (2, 8, 32):  # includes the start of Python on a busy computer
        limit = {"VIAM_MODULE_STARTUP_TIMEOUT": f"{seconds}s"}
        async with machine(tmp_path, expected, running=False, **limit) as (_, client):
            said = await says(client, f"was not ready within {seconds} s")
            if "it reports that it is not ready yet" in said:
                assert (await module_state(client))["consecutive_failures"] >= 1
                return
    raise AssertionError(said)


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ("service", "viam.robot.v1.RobotService is not the service of acme:component:sensor"),
        ("unknown", "acme.nobody.v1.NobodyService"),
    ],
)
async def test_a_module_that_reports_wrong_services(tmp_path: Path, lie: str, words: str) -> None:
    strange = component("strange", "acme:component:sensor", "acme:demo:thermometer")
    async with machine(tmp_path, document(tmp_path, strange, env={"LIE": lie})) as (_, client):
        await until_ready(client, "plain")

        async def said() -> bool:
            with pytest.raises(MachineError) as caught:
                await client.call("viam.robot.v1.RobotService", "", "restart_module", module_name="nobody")
            assert caught.value.kind is ErrorKind.NOT_FOUND
            status = await client.call("viam.robot.v1.RobotService", "", "get_machine_status")
            return any(words in resource["error"] for resource in status["resources"])

        await until(said, message=f"nothing says {words}")
        assert (await module_state(client))["state"].lower().endswith("ready")
        assert await readings(client, "plain") == PLAIN


async def test_a_model_that_the_module_does_not_have(tmp_path: Path) -> None:
    phantom = component("phantom", SENSOR, "acme:demo:phantom")
    async with machine(tmp_path, document(tmp_path, AIR, phantom, env={"LIE": "models"})) as (_, client):
        await until_ready(client, "air", "plain")
        await says(client, "phantom", name="phantom")


async def test_a_constructor_that_hangs(tmp_path: Path) -> None:
    stuck = component("stuck", SENSOR, "acme:demo:thermometer", hang="new")
    expected = document(tmp_path, stuck, AIR, watchdog="2s")
    limit = {"MACHINE_RESOURCE_CONFIGURATION_TIMEOUT": "3"}
    async with machine(tmp_path, expected, running=False, **limit) as (server, client):
        await until_ready(client, "plain")
        for _ in range(20):
            assert await readings(client, "plain") == PLAIN
        # The constructor blocks the whole process: after the limit the watchdog notices that it does not answer.
        await until(lambda: _in_log(server, "the module 'demo' has not answered for"), message=server.log()[-2000:])
        assert await readings(client, "plain") == PLAIN


async def test_a_call_that_blocks_the_module_ends_in_a_restart(tmp_path: Path) -> None:
    async with machine(tmp_path, document(tmp_path, AIR, watchdog="2s")) as (server, client):
        await until_ready(client, "air")
        first = await pid_of(client)
        with pytest.raises(MachineError) as caught, trio.fail_after(30):
            await client.call(SENSOR, "air", "do_command", command={"do": "hang", "seconds": 600})
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        await until(lambda: _another(client, first))
        assert "has not answered for 2 s" in server.log()


async def test_a_stopped_process_is_noticed(tmp_path: Path) -> None:
    async with machine(tmp_path, document(tmp_path, AIR, watchdog="1s")) as (_, client):
        await until_ready(client, "air")
        first = await pid_of(client)
        os.kill(first, signal.SIGSTOP)
        await until(lambda: _another(client, first), seconds=40)
        assert not psutil.pid_exists(first)


async def test_a_pause_below_the_limit_is_not_a_failure(tmp_path: Path) -> None:
    async with machine(tmp_path, document(tmp_path, AIR, watchdog="20s")) as (_, client):
        await until_ready(client, "air")
        first = await pid_of(client)
        await client.call(SENSOR, "air", "do_command", command={"do": "hang", "seconds": 2.5})
        assert await pid_of(client) == first


async def test_a_resource_that_does_not_close(tmp_path: Path) -> None:
    expected = document(tmp_path, component("air", SENSOR, "acme:demo:thermometer", hang="close"), watchdog="2s")
    limit = {"MACHINE_RESOURCE_CONFIGURATION_TIMEOUT": "3"}
    async with machine(tmp_path, expected, **limit) as (server, client):
        await until_ready(client, "air")
        pid = await pid_of(client)
        network = {"network": {"bind_address": "localhost:0"}}  # unchanged, so that the port stays open
        server.write({**document(tmp_path, watchdog="2s"), **network})  # removes the resource, but not the module
        await until(lambda: _gone(client, "air"))
        with trio.fail_after(30):
            for _ in range(20):
                assert await readings(client, "plain") == PLAIN
        await until(lambda: _not_there(pid), seconds=60)


async def test_memory_is_limited(tmp_path: Path) -> None:
    async with machine(tmp_path, document(tmp_path, AIR, limits={"memory_mb": 300})) as (server, client):
        await until_ready(client, "air")
        first = await pid_of(client)
        await client.call(SENSOR, "air", "do_command", command={"do": "leak", "mb": 50})
        await trio.sleep(1.5)  # longer than the interval of the checks: fifty are allowed
        assert await pid_of(client) == first
        await _until_refused(client, {"do": "leak", "mb": 50})
        await until(lambda: _another(client, first))
        assert "more than limits.memory_mb = 300" in server.log()


async def test_processes_are_limited_and_end_with_the_module(tmp_path: Path) -> None:
    async with machine(tmp_path, document(tmp_path, AIR, limits={"processes": 40, "open_files": 64})) as (
        server,
        client,
    ):
        await until_ready(client, "air")
        first = await pid_of(client)
        assert psutil.Process(first).rlimit(psutil.RLIMIT_NOFILE) == (64, 64)
        await _until_refused(client, {"do": "spawn"})
        await until(lambda: _another(client, first))
        assert "more than limits.processes = 40" in server.log()
        left = psutil.Process(server.process.pid).children(recursive=True)
        assert "sleep" not in {item.name() for item in left}


async def _until_refused(client: ApiClient, command: dict[str, Any]) -> None:
    """Repeat the command until the module is killed because of it."""
    while True:
        try:
            await client.call(SENSOR, "air", "do_command", command=command)
        except MachineError:
            return


async def _in_log(server: Any, words: str) -> bool:
    return words in server.log()


async def _another(client: ApiClient, pid: int) -> bool:
    return await pid_of(client) != pid


async def _gone(client: ApiClient, name: str) -> bool:
    try:
        await readings(client, name)
    except MachineError as error:
        return error.kind is ErrorKind.NOT_FOUND
    return False


async def _not_there(pid: int) -> bool:
    return not psutil.pid_exists(pid)

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from engine.options import EXIT_FAILED, EXIT_OK, EXIT_STUCK, EXIT_USAGE
from schema.errors import ErrorKind, MachineError
from tests.e2e.server.process import run, server

ROBOT = "viam.robot.v1.RobotService"
MOTOR = "rdk:component:motor"


def motor(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": MOTOR, "model": "fake", "attributes": attributes}


def components(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"network": {"bind_address": "localhost:0"}, "components": list(entries), **more}


@pytest.mark.parametrize("option", ["-version", "--version"])
def test_version(option: str) -> None:
    done = run(option)
    assert done.returncode == EXIT_OK
    assert done.stdout.startswith("machine-server ")


@pytest.mark.parametrize("option", ["-h", "--help", "-help"])
def test_help_names_every_option_and_exit_code(option: str) -> None:
    done = run(option)
    assert done.returncode == EXIT_OK
    for word in ("-config", "-reveal-sensitive-config-diffs", "-untrusted-env", "Exit codes", "SIGTERM"):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], EXIT_USAGE, "machine-server -config machine.json"),
        (["-de"], EXIT_USAGE, "No such option"),
        (["-ftdc=maybe"], EXIT_USAGE, "boolean"),
        (["-config", "/nowhere/machine.json"], EXIT_FAILED, "does not exist"),
    ],
)
def test_usage_errors_have_a_message_and_an_exit_code(arguments: list[str], code: int, words: str) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"components": [', "machine.json"),
        ('{"network": {"bind_address": "nonsense"}}', "network.bind_address"),
    ],
)
def test_an_unusable_configuration_ends_the_server(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text)
    done = run("-config", str(path))
    assert done.returncode == EXIT_FAILED
    assert words in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_a_used_port_ends_the_server(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        path.write_text(json.dumps({"network": {"bind_address": address}, "components": [motor("m")]}))
        done = run("-config", str(path), "-disable-mdns")
        quiet = run("-config", str(path), "-disable-mdns", "-log-file", str(tmp_path / "log"))
    assert done.returncode == quiet.returncode == EXIT_FAILED
    assert f"cannot listen on {address}: it is in use" in done.stdout
    assert f"(process {os.getpid()}): stop it, or set another port in network.bind_address" in done.stdout
    assert done.stdout.count("cannot listen") == 1, "said once"
    assert done.stdout.count("\tERROR\t") == 1
    assert "motor/m" not in done.stdout, "no driver starts before the port is open"
    assert quiet.stderr.count("cannot listen") == 1, "the log is elsewhere"


def test_dump_resources(tmp_path: Path) -> None:
    path = tmp_path / "resources.json"
    assert run("-dump-resources", str(path)).returncode == EXIT_OK
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    entries = json.loads(path.read_text())
    keys = [(entry["api"], entry["model"]) for entry in entries]
    assert keys == sorted(keys)
    assert (MOTOR, "rdk:builtin:fake") in keys


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_the_server_in_order(number: int, tmp_path: Path) -> None:
    async with server(tmp_path, {"components": [motor("m")]}, "-debug") as running:
        async with running.client() as client:
            assert await client.call(ROBOT, "", "resource_names") == [f"{MOTOR}/m"]
        assert await running.stop(number) == EXIT_OK
        assert f"received {signal.Signals(number).name}" in running.log()
        assert "Traceback" not in running.log()


async def test_shutdown_replies_and_exits_with_zero(tmp_path: Path) -> None:
    async with server(tmp_path, {}) as running:
        async with running.client() as client:
            await client.call(ROBOT, "", "shutdown")
        with trio.fail_after(30):
            assert await running.process.wait() == EXIT_OK


async def test_changes_of_the_file_restart_only_changed_resources(tmp_path: Path) -> None:
    async with server(tmp_path, {"components": [motor("a"), motor("b")]}) as running, running.client() as client:
        await client.call(MOTOR, "a", "set_power", power_pct=0.25)
        running.write(components(motor("a"), motor("c"), revision="2"))
        await until(client, revision="2")
        assert sorted(await client.call(ROBOT, "", "resource_names")) == [f"{MOTOR}/a", f"{MOTOR}/c"]
        assert await client.call(MOTOR, "a", "is_moving")  # still the same motor
        with pytest.raises(MachineError) as caught:
            await client.call(MOTOR, "b", "is_moving")
        assert caught.value.kind is ErrorKind.NOT_FOUND
        running.write(b"{")
        await until_logged(running, "the active one is kept")
        assert await client.call(MOTOR, "a", "is_moving")
        assert await running.stop() == EXIT_OK


async def test_a_new_address_moves_the_port_and_nothing_else(tmp_path: Path) -> None:
    async with server(tmp_path, {"components": [motor("a")]}) as running:
        async with running.client() as client:
            await client.call(MOTOR, "a", "set_power", power_pct=0.25)
        running.write(components(motor("a"), network={"bind_address": "127.0.0.1:0"}))
        await until_logged(running, "listening on", times=2)
        running.address = running.log().rpartition('listening on\t{"addresses":["')[2].partition('"')[0]
        async with running.client() as client:
            assert await client.call(MOTOR, "a", "is_moving")
        assert await running.stop() == EXIT_OK


@pytest.mark.parametrize(
    ("number", "levels"),
    [
        # The kernel closes the connection, as when a client ends, or resets it if an answer was not read yet.
        (signal.SIGKILL, {"a client closed its connection": "INFO", "a client vanished": "WARN"}),
        (signal.SIGSTOP, {"a client vanished": "WARN"}),  # the connection stays open without traffic
    ],
    ids=["killed", "stopped"],
)
async def test_a_disconnected_client_loses_control(number: int, levels: dict[str, str], tmp_path: Path) -> None:
    program = """
import sys, trio
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
async def main():
    async with Channel(sys.argv[1]) as channel:
        session = await ApiClient(channel).call("viam.robot.v1.RobotService", "", "start_session")
        client = ApiClient(channel, metadata={"viam-sid": session["id"]})
        await client.call("rdk:component:motor", "m", "set_power", power_pct=0.5)
        print("moving", flush=True)
        while True:
            await client.call("viam.robot.v1.RobotService", "", "send_session_heartbeat", id=session["id"])
            await trio.sleep(0.1)
trio.run(main)
"""
    network = {"bind_address": "localhost:0", "sessions": {"heartbeat_window": "2s"}}
    async with server(tmp_path, {"components": [motor("m")], "network": network}) as running:
        async with running.client() as client, trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(
                lambda *, task_status: trio.run_process(  # noqa: ASYNC105 - nursery.start awaits it
                    [sys.executable, "-c", program, running.address],
                    stdout=subprocess.PIPE,
                    check=False,
                    task_status=task_status,
                )
            )
            assert process.stdout is not None
            printed = b""
            with trio.fail_after(30):
                while printed != b"moving\n":
                    printed += await process.stdout.receive_some()
                    assert b"moving\n".startswith(printed)
            assert await client.call(MOTOR, "m", "is_moving")
            process.send_signal(number)
            with trio.fail_after(30):
                while await client.call(MOTOR, "m", "is_moving"):  # noqa: ASYNC110 - it runs down as a real one does
                    await trio.sleep(0.02)
            process.kill()
            (line,) = [item for item in running.log().splitlines() if "stopping the resources that it used" in item]
            (level,) = [level for said, level in levels.items() if f"\t{said}: " in line]
            assert f"\t{level}\t" in line


STUCK = """
import trio
from models import BUILTIN
from runtime.server.cli import main
from engine.components.motion.motor import Motor
class Stuck(Motor):
    async def run(self, *, task_status):
        try:
            task_status.started()
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep_forever()
    async def stop(self, *, extra=None):
        pass
BUILTIN["rdk:component:motor", "rdk:builtin:stuck"] = "__main__:Stuck"
main()
"""


async def test_a_second_signal_ends_stuck_resources_and_names_them(tmp_path: Path) -> None:
    stuck = {"name": "m", "api": MOTOR, "model": "stuck"}
    async with server(tmp_path, {"components": [stuck], "revision": "1"}, program=STUCK) as running:
        async with running.client() as client:
            await until(client, revision="1")
        running.process.send_signal(signal.SIGTERM)
        await until_logged(running, "stopping")
        running.process.send_signal(signal.SIGTERM)
        with trio.fail_after(30):
            assert await running.process.wait() == EXIT_STUCK
        assert "did not stop in time" in running.log()
        assert f"{MOTOR}/m" in running.log().partition("did not stop in time")[2]


async def until(client: Any, *, revision: str) -> None:
    """Wait until a configuration is current and applied."""
    with trio.fail_after(30):
        while True:
            status = await client.call(ROBOT, "", "get_machine_status")
            settled = all(resource["state"] not in ("CONFIGURING", "REMOVING") for resource in status["resources"])
            if status["config"]["revision"] == revision and settled:
                return
            await trio.sleep(0.02)


async def until_logged(running: Any, words: str, *, times: int = 1) -> None:
    """Wait until the log of the other process contains `words`."""
    with trio.fail_after(30):
        while running.log().count(words) < times:  # noqa: ASYNC110 - the log of another process
            await trio.sleep(0.02)

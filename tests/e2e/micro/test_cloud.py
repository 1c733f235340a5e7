"""Micro servers with machine-cloud as a process: configuration, calls of all clients, logs, data, restart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema import MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.test_machine import APP, until
from tests.e2e.micro.machines import CAR, EYE, LEFT, PINS, SELF
from tests.e2e.micro.program import FIRMWARE, PYTHON, MicroServer, micro_server
from tests.scope import some_of

DATA = "viam.app.data.v1.DataService"
HOSTS = [(FIRMWARE, "96k"), (PYTHON, "")]
CAPTURED = {
    **SELF,
    "service_configs": [
        {
            "type": "data_manager",
            "attributes": {"capture_methods": [{"method": "Readings", "capture_frequency_hz": 5, "tags": ["t"]}]},
        }
    ],
}


class Joined:
    """A cloud with a machine."""

    def __init__(self, running: CloudProcess, client: ApiClient, part: dict[str, Any]) -> None:
        self.running = running
        self.client = client
        self.part = part["id"]
        self.section = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}

    async def save(self, document: dict[str, Any]) -> None:
        text = json.dumps(document)
        await self.client.call(APP, "", "update_robot_part", id=self.part, name="", robot_config_json=text)

    @asynccontextmanager
    async def machine(self) -> AsyncIterator[ApiClient]:
        """Yield a client of the machine through the cloud."""
        key = ApiKey(*self.running.key)
        headers = (("machine-part", self.part),)
        async with Channel(f"http://{self.running.address}", credentials=key, headers=headers) as channel:
            yield ApiClient(channel)

    async def command(self, *words: str) -> str:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MACHINE_")}
        key_id, key = self.running.key
        login = {
            "MACHINE_CLOUD": f"http://{self.running.address}",
            "MACHINE_CLOUD_KEY_ID": key_id,
            "MACHINE_CLOUD_KEY": key,
        }
        command = [sys.executable, "-m", "command.cli", "--cloud", "rover", *words]
        done = await trio.run_process(
            command, capture_stdout=True, stderr=subprocess.STDOUT, check=False, env={**kept, **login}, stdin=b""
        )
        assert done.returncode == 0, done.stdout.decode()
        return done.stdout.decode()


@asynccontextmanager
async def joined(tmp_path: Path) -> AsyncIterator[Joined]:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        yield Joined(running, client, part)


async def quietly(call: Callable[[], Any]) -> Any:
    """Return the result of a call; None if it fails."""
    try:
        return await call()
    except MachineError:
        return None


async def line(server: MicroServer, text: str) -> str:
    return await trio.to_thread.run_sync(server.until, text)


@pytest.mark.parametrize(("host", "heap"), some_of(1, HOSTS, 10))
async def test_a_machine_of_the_cloud(tmp_path: Path, host: str, heap: str) -> None:
    async with joined(tmp_path) as opened:
        await opened.save({"components": [CAPTURED, PINS, LEFT, EYE]})
        with micro_server(tmp_path, {"cloud": opened.section}, host, heap) as server:
            await line(server, "configured: 3 of 4 components are ready")
            async with opened.machine() as machine:
                names = await machine.call("viam.robot.v1.RobotService", "", "resource_names")
                assert {name.rpartition("/")[2] for name in names} == {"self", "pins", "left"}
                await machine.call("rdk:component:motor", "left", "set_power", power_pct=0.5)
                assert (await machine.call("rdk:component:motor", "left", "is_powered"))["power_pct"] == 0.5

                await opened.save({"components": [CAPTURED, *CAR["components"][1:]]})
                await line(server, "configured: 5 of 6 components are ready")
                assert await machine.call("rdk:component:base", "rover", "is_moving")

            async def shown() -> bool:
                part = (await opened.client.call(APP, "", "get_robot_part", id=opened.part))["part"]
                return bool(part["online_state"] == "ONLINE")

            await until(shown, "online")
            assert "this server has no models of camera" in await opened.command("status")
            assert "true" in await opened.command("call", "left", "is_moving")

            async with Channel(f"http://{server.address}", credentials=ApiKey(*opened.running.key)) as channel:
                assert await ApiClient(channel).call("rdk:component:sensor", "self", "get_readings")
            async with Channel(f"http://{server.address}", credentials=ApiKey(opened.running.key[0], "no")) as channel:
                with pytest.raises(MachineError, match="not valid for this machine"):
                    await ApiClient(channel).call("rdk:component:sensor", "self", "get_readings")

            async def logged() -> bool:
                entries = await opened.client.call(APP, "", "get_robot_part_logs", id=opened.part)
                return any("has no models of camera" in str(entry) for entry in entries["logs"])

            await until(logged, "the log is in the cloud")

            async def captured() -> bool:
                reply = await quietly(
                    lambda: opened.client.call(DATA, "", "tabular_data_by_filter", data_request={"limit": 50})
                )
                return reply is not None and "heap_free_bytes" in str(reply)

            await until(captured, "captured data is in the cloud")
            await opened.client.call(APP, "", "mark_part_for_restart", part_id=opened.part)
            await line(server, "asks for a restart")
            with trio.fail_after(20):
                assert await trio.to_thread.run_sync(server.process.wait) == 0


@pytest.mark.parametrize(("host", "heap"), HOSTS[:1])
async def test_a_start_without_the_cloud(tmp_path: Path, host: str, heap: str) -> None:
    async with joined(tmp_path) as opened:
        await opened.save({"components": [SELF]})
        key = ApiKey(*opened.running.key)
        with micro_server(tmp_path, {"cloud": opened.section}, host, heap) as server:
            await line(server, "configured: 1 of 1 components are ready")

            async def kept() -> bool:
                return (tmp_path / "machine.json.cloud").exists()

            await until(kept, "the configuration is in a file")
    with micro_server(tmp_path, {"cloud": opened.section}, host, heap) as server:
        await line(server, "not connected")
        async with Channel(f"http://{server.address}", credentials=key) as channel:
            assert await ApiClient(channel).call("rdk:component:sensor", "self", "get_readings")
        (tmp_path / "machine.json.cloud").unlink()
    with micro_server(tmp_path, {"cloud": opened.section}, host, heap) as server:
        async with Channel(f"http://{server.address}", credentials=key) as channel:
            with pytest.raises(MachineError):  # without a configuration, no key opens the machine
                await ApiClient(channel).call("viam.robot.v1.RobotService", "", "resource_names")

"""machine-server joined to machine-cloud, both as processes."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from rpc.api.client import ApiClient
from rpc.api.cloud_v1 import HEALTH
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.server.process import Server, server

APP = "viam.app.v1.AppService"
MACHINE = "viam.robot.v1.RobotService"
SENSOR = "rdk:component:sensor"
LIMIT = 60.0  # seconds; the figures are measured by bench/propagation.py


class Joined:
    """A cloud with one machine."""

    def __init__(self, running: CloudProcess, client: ApiClient, part: dict[str, Any], folder: Path) -> None:
        self.running = running
        self.client = client
        self.part = part["id"]
        self.credentials = {
            "id": part["id"],
            "secret": part["secret"],
            "app_address": f"http://{running.address}",
        }
        self.folder = folder

    async def save(self, **document: Any) -> None:
        await self.client.call(
            APP, "", "update_robot_part", id=self.part, name="", robot_config_json=json.dumps(document)
        )

    @asynccontextmanager
    async def machine(self, **document: Any) -> AsyncIterator[Server]:
        self.folder.mkdir(exist_ok=True)
        async with server(self.folder, {"cloud": self.credentials, **document}, "-disable-mdns") as running:
            yield running


def sensors(*names: str) -> dict[str, Any]:
    return {"components": [{"name": name, "api": SENSOR, "model": "fake"} for name in names]}


@pytest.fixture
async def joined(tmp_path: Path) -> AsyncIterator[Joined]:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        yield Joined(running, client, part, tmp_path / "machine")


async def until(true: Callable[[], Any], what: str, limit: float = LIMIT) -> float:
    """Repeat a check until it is true, as a client does; return the seconds that took."""
    begin = time.monotonic()
    with trio.move_on_after(limit):
        while True:
            if await true():
                return time.monotonic() - begin
            await trio.sleep(0.02)
    raise AssertionError(f"not within {limit} s: {what}")


async def names(machine: Server, key: tuple[str, str]) -> set[str]:
    """Return the resources of a machine, requested with a key of the cloud; empty if the call fails."""
    try:
        async with Channel(machine.address, credentials=ApiKey(*key)) as channel:
            answer = await ApiClient(channel).call(MACHINE, "", "resource_names")
    except MachineError:
        return set()
    return {item.rpartition("/")[2] for item in answer}


async def test_a_saved_configuration_runs_and_a_broken_one_does_not_stop_it(joined: Joined) -> None:
    key = joined.running.key
    await joined.save(**sensors("a"))
    async with joined.machine() as machine:

        async def has(*expected: str) -> bool:
            return await names(machine, key) == set(expected)

        await until(lambda: has("a"), "the first configuration")
        await joined.save(**sensors("a", "b"))
        await until(lambda: has("a", "b"), "the second")
        await joined.save(components=5)
        await until(lambda: _rejected(machine), "the broken one is refused")
        assert await has("a", "b")
        await joined.save(**sensors("c"))
        await until(lambda: has("c"), "the one after it")


async def _rejected(machine: Server) -> bool:
    return "the configuration cannot be used" in machine.log()


async def test_the_cloud_shows_the_machine_online_with_its_address(joined: Joined) -> None:
    await joined.save(**sensors("a"))
    async with joined.machine() as machine:

        async def seen() -> bool:
            part = (await joined.client.call(APP, "", "get_robot_part", id=joined.part))["part"]
            return part["online_state"] == "ONLINE" and part["fqdn"] == machine.address

        await until(seen, "online, with its address")


async def test_the_machine_accepts_only_keys_of_its_cloud(joined: Joined) -> None:
    await joined.save(**sensors("a"))
    organization = joined.running.facts["organization"]
    grant = {"authorization_id": "organization_operator", "resource_type": "organization", "resource_id": organization}
    created = await joined.client.call(APP, "", "create_key", authorizations=[grant], name="guard")
    guard = (created["id"], created["key"])
    async with joined.machine() as machine:

        async def opens(key: tuple[str, str]) -> bool:
            return await names(machine, key) == {"a"}

        await until(lambda: opens(guard), "opened by a key of the cloud")
        assert not await opens((guard[0], "wrong"))
        async with machine.client() as anonymous:
            with pytest.raises(MachineError) as caught:
                await anonymous.call(MACHINE, "", "resource_names")
            assert caught.value.kind is ErrorKind.UNAUTHENTICATED
        await joined.client.call(APP, "", "delete_key", id=guard[0])

        async def shut() -> bool:
            return not await opens(guard)

        await until(shut, "shut for a key that was deleted")
        assert await opens(joined.running.key)


async def test_logs_reach_the_cloud_including_those_of_an_outage(joined: Joined) -> None:
    async def logged(text: str) -> int:
        answer = await joined.client.call(APP, "", "get_robot_part_logs", id=joined.part, limit=1000)
        return sum(text in entry["message"] for entry in answer["logs"])

    await joined.save(**sensors("a"))
    async with joined.machine() as machine:
        await until(lambda: logged("connected to the cloud"), "the first message")
        assert await machine.stop() == 0
    async with joined.machine():

        async def both_ends() -> bool:
            return (await logged("starting"), await logged("stopped")) == (2, 1)

        await until(both_ends, "the last words of the first start, and the first of the second, each once")


async def test_a_machine_starts_without_the_cloud_with_its_last_configuration(joined: Joined) -> None:
    key = joined.running.key
    await joined.save(**sensors("a", "b"))
    async with joined.machine() as machine:

        async def has(*expected: str) -> bool:
            return await names(machine, key) == set(expected)

        await until(lambda: has("a", "b"), "the first start")
        await joined.save(components=5)
        await until(lambda: _rejected(machine), "a broken one, which is not what it starts with")
    joined.running.process.kill()
    async with joined.machine() as machine:
        await until(lambda: has("a", "b"), "the start without the cloud")
        assert "using the cached configuration until the cloud answers" in machine.log()
        assert machine.log().count("not connected to the cloud") == 1


async def test_a_restart_requested_in_the_cloud(joined: Joined) -> None:
    async with joined.machine() as machine:
        await until(lambda: _said(machine, "connected to the cloud"), "connected")
        await joined.client.call(APP, "", "mark_part_for_restart", part_id=joined.part)
        with trio.fail_after(LIMIT):
            assert await machine.process.wait() == 0
        assert "the cloud requested a restart" in machine.log()


async def _said(machine: Server, text: str) -> bool:
    return text in machine.log()


async def test_a_wrong_secret_is_reported_with_a_reason(joined: Joined) -> None:
    joined.credentials["secret"] = "wrong"
    async with joined.machine() as machine:
        await until(lambda: _said(machine, "not connected to the cloud"), "refused")
        assert "the credentials are wrong" in machine.log()
        assert 'wrong"' not in machine.log()


async def test_two_servers_for_one_part_in_one_folder_are_refused(joined: Joined) -> None:
    async with joined.machine():
        with pytest.raises(AssertionError, match="another machine-server uses"):
            async with joined.machine():
                pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_only_a_machine_that_stops_in_order_is_offline_at_once(joined: Joined, number: signal.Signals) -> None:
    async def state() -> str:
        (entry,) = await joined.client.call(HEALTH, "", "list_health")
        return str(entry["state"])

    async def is_online() -> bool:
        return await state() == "online"

    await joined.save(**sensors("a"))
    async with joined.machine() as machine:
        await until(is_online, "online")
        await machine.stop(number)
        assert await state() == ("offline" if number is signal.SIGTERM else "online")
    async with joined.machine():
        await until(is_online, "online again")

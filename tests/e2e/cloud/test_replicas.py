"""Two machine-cloud processes that share only a PostgreSQL database and a folder of files."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.document.cloud import Cloud
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.relay import relay
from tests.postgresql import QUICK, Cluster, cluster
from uplink.configuration import CloudSource
from uplink.dial import address_of

APP = "viam.app.v1.AppService"
ROBOT = "viam.app.v1.RobotService"
LIMIT = 60.0  # seconds for steps that usually take milliseconds


class Replicas:
    """Both processes, by number, and the owner's key."""

    def __init__(self, running: list[CloudProcess]) -> None:
        self.running = running
        (self.first,) = [item for item in running if item.facts]
        self.key = self.first.key
        self.place = self.first.facts["location"]

    @asynccontextmanager
    async def client(self, number: int) -> AsyncIterator[ApiClient]:
        async with self.running[number].client(self.key) as client:
            yield client

    async def new_part(self, name: str) -> dict[str, Any]:
        async with self.client(0) as client:
            robot = await client.call(APP, "", "new_robot", name=name, location=self.place)
            entry: dict[str, Any] = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
            return entry


@asynccontextmanager
async def replicas(folder: Path, url: str) -> AsyncIterator[Replicas]:
    """Start both at the same time on an empty database."""
    running: list[CloudProcess] = []
    options = ("--database", url, "--files", str(folder / "files"))

    async def start_replica(name: str, *, task_status: trio.TaskStatus[CloudProcess]) -> None:
        async with cloud(folder / name, *options) as process:
            running.append(process)
            task_status.started(process)
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as starting:
            for name in ("a", "b"):
                starting.start_soon(nursery.start, start_replica, name)
        yield Replicas(running)
        nursery.cancel_scope.cancel()


class Follower:
    """A machine that follows its configuration, as machine-server does."""

    def __init__(self, part: dict[str, Any], address: str, folder: Path) -> None:
        own = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{address}"}
        where = address_of(Cloud(id=part["id"], secret=part["secret"], app_address=own["app_address"]))
        self.source = CloudSource(where, json.dumps({"cloud": own}).encode(), folder, Worker(f"cache {part['id']}"))
        self.heard: list[int] = []
        self._changed = trio.Event()

    async def run(self) -> None:
        async with self.source.readings() as readings:
            async for reading in readings:
                self.heard.append(json.loads(reading.data or b"{}").get("number", 0))
                self._changed.set()
                self._changed = trio.Event()

    async def hears(self, number: int) -> None:
        with trio.fail_after(LIMIT):
            while number not in self.heard:
                await self._changed.wait()


async def save(client: ApiClient, part: str, number: int) -> None:
    await client.call(APP, "", "update_robot_part", id=part, name="", robot_config={"number": number})


@pytest.fixture
async def both(tmp_path: Path, postgresql: Cluster) -> AsyncIterator[Replicas]:
    async with replicas(tmp_path, postgresql.fresh()) as running:
        yield running


async def test_concurrent_first_starts_create_one_organization_and_key(both: Replicas) -> None:
    credentials = ApiKey(*both.key)
    async with Channel(both.running[0].address, credentials=credentials) as channel:
        assert len(await ApiClient(channel).call(APP, "", "list_organizations")) == 1
        headers = await credentials.headers(channel)
    async with Channel(both.running[1].address) as channel:  # the token was signed by the other replica
        client = ApiClient(channel, metadata=dict(headers))
        assert len(await client.call(APP, "", "list_organizations")) == 1


async def test_saves_at_one_replica_are_pushed_by_the_other(both: Replicas, tmp_path: Path) -> None:
    part = await both.new_part("rover")
    async with relay(both.running[1].address) as balancer, trio.open_nursery() as nursery:
        machine = Follower(part, balancer.address, tmp_path / "cache")
        nursery.start_soon(machine.run)
        async with both.client(0) as client:
            for number in range(1, 11):
                await save(client, part["id"], number)
                await machine.hears(number)
            both.running[1].process.kill()
            balancer.target = both.running[0].address
            await save(client, part["id"], 11)
            await machine.hears(11)
        nursery.cancel_scope.cancel()
    assert machine.heard == sorted(machine.heard)


async def test_a_deleted_key_is_invalid_at_both_replicas(both: Replicas) -> None:
    grant = {"authorization_id": "organization_operator", "resource_type": "organization"}
    grant["resource_id"] = both.first.facts["organization"]
    async with both.client(0) as client:
        key = await client.call(APP, "", "create_key", authorizations=[grant], name="guard")
        guard = (key["id"], key["key"])
        await _until(lambda: _opens(both.running[1], guard))
        await client.call(APP, "", "delete_key", id=guard[0])
        await _until(lambda: _refuses(both.running[1], guard))


async def _until(true: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(LIMIT):
        while True:
            if await true():
                return
            await trio.sleep(0.01)


async def _opens(running: CloudProcess, key: tuple[str, str]) -> bool:
    return not await _refuses(running, key)


async def _refuses(running: CloudProcess, key: tuple[str, str]) -> bool:
    try:
        async with running.client(key) as client:
            await client.call(APP, "", "list_organizations")
    except MachineError as error:
        if error.kind is not ErrorKind.UNAUTHENTICATED:
            raise
        return True
    return False


async def test_saves_at_both_replicas_form_one_history(both: Replicas) -> None:
    part = (await both.new_part("rover"))["id"]
    kept: list[int] = []

    async def write(replica: int, numbers: range) -> None:
        async with both.client(replica) as client:
            for number in numbers:
                await save(client, part, number)
                kept.append(number)

    async with trio.open_nursery() as nursery:
        for first in (100, 200):
            nursery.start_soon(write, 0, range(first, first + 15))
            nursery.start_soon(write, 1, range(1000 + first, 1000 + first + 15))
    async with both.client(0) as client:
        history = await client.call(APP, "", "get_robot_part_history", id=part, page_limit=1000)
        now = (await client.call(APP, "", "get_robot_part", id=part))["part"]["robot_config"]["number"]
    replaced = [int(entry["old"]["robot_config"].get("number", 0)) for entry in history["history"]]
    assert sorted([*replaced, int(now)]) == sorted([0, *kept])


async def test_logs_sent_to_one_replica_are_followed_at_the_other(both: Replicas) -> None:
    part = (await both.new_part("rover"))["id"]
    seen: list[str] = []

    async def log(replica: int) -> None:
        async with both.client(replica) as client:
            for number in range(30):
                entry = {"message": f"{replica} {number}", "level": "info", "logger_name": "x"}
                await client.call(ROBOT, "", "log", id=part, logs=[entry])

    async with both.client(1) as client, trio.open_nursery() as nursery:

        async def tail() -> None:
            async with aclosing(client.stream(APP, "", "tail_robot_part_logs", id=part)) as stream:
                async for entries in stream:
                    seen.extend(item["message"] for item in entries)
                    if "end" in seen:
                        return

        with trio.fail_after(LIMIT):
            nursery.start_soon(tail)
            while not seen:  # the first entry shows that the tail has started
                await client.call(ROBOT, "", "log", id=part, logs=[{"message": "begin", "level": "info"}])
                await trio.sleep(0.05)
            async with trio.open_nursery() as writers:
                writers.start_soon(log, 0)
                writers.start_soon(log, 1)
            await client.call(ROBOT, "", "log", id=part, logs=[{"message": "end", "level": "info"}])
    for replica in (0, 1):
        assert [element for element in seen if element.startswith(f"{replica} ")] == [
            f"{replica} {n}" for n in range(30)
        ]


async def test_an_outage_of_the_database(tmp_path: Path) -> None:
    with cluster(*QUICK) as server:
        async with replicas(tmp_path, server.url()) as both:
            part = await both.new_part("rover")
            async with trio.open_nursery() as nursery:
                machine = Follower(part, both.running[1].address, tmp_path / "cache")
                nursery.start_soon(machine.run)
                async with both.client(0) as client, both.client(1) as other:
                    await save(client, part["id"], 1)
                    await machine.hears(1)
                    server.stop()
                    for item in (client, other):
                        for _ in range(10):  # more than the number of connections
                            with pytest.raises(MachineError, match=r"the database '.*' at .*") as caught:
                                await item.call(APP, "", "list_organizations")
                            assert caught.value.kind is ErrorKind.UNAVAILABLE
                    server.start()
                    for item in (client, other):
                        for _ in range(10):
                            assert len(await item.call(APP, "", "list_organizations")) == 1
                    await save(client, part["id"], 2)
                    await machine.hears(2)
                nursery.cancel_scope.cancel()
            for item in both.running:
                assert item.process.poll() is None


@pytest.mark.parametrize("way", ["delete_key", "rotate_key"])
async def test_keys_created_and_revoked_at_one_replica_apply_at_the_other(both: Replicas, way: str) -> None:
    """A call is refused at the next attempt, without waiting for an event; a stream ends with the event."""
    part = await both.new_part("rover")
    grant = {
        "authorization_type": "role",
        "authorization_id": "location_operator",
        "resource_type": "location",
        "resource_id": both.place,
        "identity_type": "api-key",
    }
    heard, kinds = trio.Event(), list[ErrorKind]()
    machine = ApiKey(part["id"], part["secret"], type="robot-secret")

    async def tail(client: ApiClient, *, task_status: trio.TaskStatus[trio.Event]) -> None:
        ended = trio.Event()
        task_status.started(ended)
        try:
            async for _ in client.stream(APP, "", "tail_robot_part_logs", id=part["id"], errors_only=False):
                heard.set()
        except MachineError as error:
            kinds.append(error.kind)
        ended.set()

    async with both.client(0) as owner, Channel(both.running[0].address, credentials=machine) as channel:
        created = await owner.call(APP, "", "create_key", authorizations=[grant], name="guard")
        key = created["id"], created["key"]
        with trio.fail_after(2 * LIMIT):
            async with both.running[1].client(key) as other, trio.open_nursery() as nursery:
                ended = await nursery.start(tail, other)
                while not heard.is_set():  # the tail has started when it has returned an entry
                    entry = {"level": "info", "message": "hello", "time": None}
                    await ApiClient(channel).call(ROBOT, "", "log", id=part["id"], logs=[entry])
                    with trio.move_on_after(0.1):
                        await heard.wait()
                await owner.call(APP, "", way, id=key[0])
                with pytest.raises(MachineError) as caught:
                    await other.call(APP, "", "get_robot_part", id=part["id"])
                await ended.wait()
        assert [caught.value.kind, *kinds] == [ErrorKind.UNAUTHENTICATED, ErrorKind.UNAUTHENTICATED]
        async with both.running[1].client(key) as again:
            with pytest.raises(MachineError, match="the credentials are wrong"):
                await again.call(APP, "", "get_robot_part", id=part["id"])

"""A whole machine that is called through its cloud: sessions, and the part of machine-server that serves the calls."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpcore
import pytest
import trio
import trio.testing

from cloud.server.memory import MemoryCloud
from cloud.services.reverse.calls import PART
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from runtime.parts.cloud.calls import WAITING, CloudCalls
from runtime.parts.cloud.link import open_link
from runtime.server.memory import MemoryMachine, open_machine
from schema.document.cloud import ApiKey as ApiKeySection
from schema.document.cloud import Cloud
from tests.unit.cloud.conftest import clock, cloud, database, machine, part  # noqa: F401 - fixtures
from tests.unit.cloud.replicas import operator_key
from tests.unit.cloud.services.reverse.site import DOMAIN, Site, site
from uplink.dial import CloudAddress

ROBOT, MOTOR = "viam.robot.v1.RobotService", "rdk:component:motor"
WINDOW = 0.5  # seconds
COMPONENTS = [{"name": name, "api": MOTOR, "model": "fake"} for name in ("left", "right")]


@asynccontextmanager
async def joined(
    opened: Site,
    part: str,  # noqa: F811
    home: Path,
    *,
    key: tuple[str, str] | None = None,
    **more: Any,
) -> AsyncIterator[MemoryMachine]:
    """Run a machine that has joined the cloud as `part`, with the secret of the part or a key."""
    own: dict[str, Any] = {"id": part, "app_address": opened.url}
    own |= {"secret": await opened.secret_of(part)} if key is None else {"api_key": {"id": key[0], "key": key[1]}}
    section = Cloud(**{**own, **({"api_key": ApiKeySection(**own["api_key"])} if key else {})})
    link = open_link(section, json.dumps({"cloud": own}).encode(), {"MACHINE_HOME": str(home)})
    document = {
        "components": COMPONENTS,
        "cloud": {**own, "machine_domain": DOMAIN},  # which the cloud sends: see test_the_domain_is_sent
        "network": {"sessions": {"heartbeat_window": f"{WINDOW}s"}},
        **more,
    }
    async with open_machine(document, cloud=link) as memory, link.source.readings():
        await memory.graph.settled()
        while not opened.cloud.cloud.reverses.follows(part):
            await trio.testing.wait_all_tasks_blocked(0.01)
        yield memory
    link.sink.close()


@asynccontextmanager
async def client_of(opened: Site, part: str, key: tuple[str, str]) -> AsyncIterator[ApiClient]:  # noqa: F811
    """Yield a client of the machine, through the cloud."""
    async with Channel(opened.url, credentials=ApiKey(*key), headers=((PART, part),)) as channel:
        yield ApiClient(channel)


async def test_a_client_that_vanishes_stops_its_motor_and_no_other(
    cloud: MemoryCloud,  # noqa: F811
    part: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    owner = (cloud.first.id, cloud.first.key)
    operator = await cloud.cloud.store.write(lambda sql: operator_key(sql, cloud))
    async with site(cloud, tmp_path) as opened, joined(opened, part, tmp_path) as memory:
        sessions, local = memory.machine.traffic.sessions, memory.client()
        async with client_of(opened, part, operator) as staying, trio.open_nursery() as nursery:
            kept = (await staying.call(ROBOT, "", "start_session"))["id"]
            async with client_of(opened, part, owner) as leaving:
                left = (await leaving.call(ROBOT, "", "start_session"))["id"]
                assert {session.owner for session in sessions.status()} == {owner[0], operator[0]}
                assert {session.peer for session in sessions.status()} == {"cloud"}
                await _turn(leaving, "left", left)
                await _turn(staying, "right", kept)
                with pytest.raises(Exception, match="SESSION_EXPIRED"):
                    await staying.call(ROBOT, "", "send_session_heartbeat", id=left)  # of another caller

            async def beat() -> None:
                while True:
                    await staying.call(ROBOT, "", "send_session_heartbeat", id=kept)
                    await trio.sleep(WINDOW / 5)

            nursery.start_soon(beat)
            started = trio.current_time()
            while await local.call(MOTOR, "left", "is_moving"):
                await trio.testing.wait_all_tasks_blocked(0.01)
            assert trio.current_time() - started < 10 * WINDOW
            assert await local.call(MOTOR, "right", "is_moving")
            nursery.cancel_scope.cancel()


class Resolver(trio.abc.HostnameResolver):
    """The wildcard name of an operator."""

    async def getaddrinfo(self, host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        assert host.decode().endswith(f".{DOMAIN}")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    async def getnameinfo(self, *arguments: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("auth", ["of the entry", "of the machine", "none"])
async def test_a_machine_as_a_remote_through_the_cloud(
    cloud: MemoryCloud,  # noqa: F811
    part: str,  # noqa: F811
    tmp_path: Path,
    auth: str,
) -> None:
    trio.socket.set_custom_hostname_resolver(Resolver())
    owner = (cloud.first.id, cloud.first.key)
    robot = await cloud.app("new_robot", name="tractor", location=cloud.first.location)
    other = (await cloud.app("get_robot_parts", robot_id=robot))[0]["id"]
    entry: dict[str, Any] = {"name": "arm", "address": f"rover-{part}.{DOMAIN}", "reconnect_interval": "50ms"}
    if auth == "of the entry":
        entry["auth"] = {"entity": owner[0], "credentials": {"type": "api-key", "payload": owner[1]}}
    key = owner if auth == "of the machine" else None
    async with (
        site(cloud, tmp_path) as opened,
        joined(opened, part, tmp_path / "a") as far,
        joined(opened, other, tmp_path / "b", key=key, remotes=[entry]) as near,
    ):
        client = near.client()
        if auth == "none":
            await near.graph.settled()
            failure = near.machine.parts.remotes.links["arm"].failure
            assert "there is no part" in failure, failure
            return
        with trio.fail_after(10):
            while "rdk:component:motor/arm:left" not in near.machine.roster.hosts:
                await trio.testing.wait_all_tasks_blocked(0.01)
        await client.call(MOTOR, "arm:left", "set_power", power_pct=0.5)
        assert await far.client().call(MOTOR, "left", "is_moving")


async def test_the_domain_is_sent_to_machines(cloud: MemoryCloud, part: str, tmp_path: Path) -> None:  # noqa: F811
    async with site(cloud, tmp_path) as opened, joined(opened, part, tmp_path) as memory:
        source = memory.machine.cloud.source
        while not source.fetched:
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert json.loads(source._reading.data)["cloud"]["machine_domain"] == DOMAIN


async def test_calls_with_json(cloud: MemoryCloud, part: str, tmp_path: Path) -> None:  # noqa: F811
    async with site(cloud, tmp_path) as opened, joined(opened, part, tmp_path):
        async with Channel(opened.url, credentials=ApiKey(cloud.first.id, cloud.first.key)) as channel:
            token = dict(await channel.credential_headers())["authorization"]
        path = "/viam/api/v1/component/motor/left"
        bearer = {"authorization": token}
        for expected, method, target, headers in (
            (200, "PUT", f"{path}/power?power_pct=0.5", {**bearer, "machine-part": part}),
            (200, "GET", f"{path}/is_moving", {**bearer, "host": f"rover-{part}.{DOMAIN}"}),
            (401, "GET", f"{path}/is_moving", {"machine-part": part}),
            (404, "GET", f"{path}/is_moving", {**bearer, "machine-part": "another"}),
            (404, "GET", f"{path}/is_moving", bearer),  # the cloud itself has no motors
            (404, "GET", "/logs", {**bearer, "machine-part": part}),
        ):
            status, body = await _request(opened.url, method, target, headers)
            assert status == expected, (target, body)
            if target.endswith("moving") and expected == 200:
                assert json.loads(body) == {"isMoving": True}
        sign_in = {"entity": cloud.first.id, "credentials": {"type": "api-key", "payload": cloud.first.key}}
        content = json.dumps(sign_in).encode()
        status, body = await _request(opened.url, "POST", "/rpc/v1/authenticate", {"machine-part": part}, content)
        assert (status, "accessToken" in json.loads(body)) == (200, True)


async def _request(
    url: str, method: str, target: str, headers: dict[str, str], content: bytes = b""
) -> tuple[int, bytes]:
    async with httpcore.AsyncConnectionPool() as pool:
        answer = await pool.request(method, f"{url}{target}", headers=list(headers.items()), content=content)
        return answer.status, answer.content


async def _turn(client: ApiClient, name: str, session: str) -> None:
    await ApiClient(client._channel, metadata={"viam-sid": session}).call(MOTOR, name, "set_power", power_pct=0.5)


@pytest.mark.parametrize("orderly", [True, False])
async def test_a_client_that_closes_its_connection_is_not_reported_as_lost(
    cloud: MemoryCloud,  # noqa: F811
    part: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    orderly: bool,
) -> None:
    monkeypatch.setattr("cloud.work.reverse.LINGER", WINDOW / 10)
    owner = (cloud.first.id, cloud.first.key)
    async with site(cloud, tmp_path) as opened, joined(opened, part, tmp_path) as memory:
        async with client_of(opened, part, owner) as client:
            left = (await client.call(ROBOT, "", "start_session"))["id"]
            session = memory.machine.traffic.sessions.find(left, owner[0])
            if not orderly:
                connection = await client._channel.connection()
                reset = struct.pack("ii", 1, 0)  # the connection is reset instead of closed
                connection.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                connection.abort()
        while not session.ended:
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert session.closed is orderly


@pytest.mark.parametrize(
    "message",
    [
        5,
        {},
        {"id": "", "caller": {"type": "api-key", "id": "key"}},
        {"id": "1", "caller": {"type": "api-key", "id": ""}},
        {"id": "1", "caller": "key"},
        {"id": "1", "caller": {"type": "api-key", "id": "key"}, "address": "file:///etc"},
        {"id": "1", "caller": {"type": "api-key", "id": "key"}, "address": 5},
    ],
)
def test_an_invalid_request_of_the_cloud_is_refused(message: Any) -> None:
    calls = CloudCalls(CloudAddress("http://localhost:9", "part", "part", "robot-secret", "s"))
    with pytest.raises((ValueError, TypeError, KeyError)):
        calls.requested(message)


def test_requests_beyond_a_limit_are_dropped() -> None:
    calls = CloudCalls(CloudAddress("http://localhost:9", "part", "part", "robot-secret", "s"))
    for _ in range(WAITING + 1):
        calls.requested({"id": "1", "caller": {"type": "api-key", "id": "key"}})
    assert calls._receive.statistics().current_buffer_used == WAITING

"""Streams end when their key is revoked, and each key has a limited number of open streams."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from cloud.server.memory import APP, ROBOT, MemoryCloud
from cloud.web.common.closing import GONE, RECONNECT, REFUSED
from cloud.work.checks import Checks
from rpc.access.credential_types import PART_SECRET
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.pages import HOST, browser, signed_in
from tests.unit.cloud.replicas import LIMIT, Counted, authorization_at, operator_key, replica
from tests.unit.cloud.web.test_web_machine import Machine, connected, machine_token

# ---- streams


async def _deleted(cloud: MemoryCloud, key: str) -> None:
    await cloud.app("delete_key", id=key)


async def _rotated(cloud: MemoryCloud, key: str) -> None:
    await cloud.app("rotate_key", id=key)


async def _without_role(cloud: MemoryCloud, key: str) -> None:
    elsewhere = authorization_at(cloud, "location", await _empty(cloud), key)
    await cloud.app("add_role", authorization=elsewhere)  # a key must keep a role
    await cloud.app("remove_role", authorization=authorization_at(cloud, "organization", cloud.first.organization, key))


async def _empty(cloud: MemoryCloud) -> str:
    location = await cloud.app("create_location", organization_id=cloud.first.organization, name="empty")
    return str(location["id"])


CHANGES = {
    "deleted": (_deleted, ErrorKind.UNAUTHENTICATED),
    "rotated": (_rotated, ErrorKind.UNAUTHENTICATED),
    "without role": (_without_role, ErrorKind.NOT_FOUND),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_log_stream_ends_when_its_key_is_deleted(cloud: MemoryCloud, part: str, change: str) -> None:
    do, kind = CHANGES[change]
    key = await cloud.cloud.store.write(lambda sql: operator_key(sql, cloud))
    async with replica(cloud, hears=True) as (near, _):
        client = near.client(await near.sign_in(*key))
        heard = trio.Event()
        ended: list[MachineError] = []

        async def tail() -> None:
            try:
                async for _ in client.stream(APP, "", "tail_robot_part_logs", id=part, errors_only=False):
                    heard.set()
            except MachineError as error:
                ended.append(error)

        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tail)
                while not heard.is_set():
                    entry = {"level": "info", "message": "hello", "time": cloud.cloud.clock()}
                    await cloud.client(part, PART_SECRET).call(ROBOT, "", "log", id=part, logs=[entry])
                    with trio.move_on_after(0.1):
                        await heard.wait()
                await cloud.app("rename_key", id=key[0], name="another")  # not a reason to end the stream
                await do(cloud, key[0])
        assert [error.kind for error in ended] == [kind]


async def test_a_page_ends_if_its_key_was_deleted_before_it_subscribed(cloud: MemoryCloud, part: str) -> None:
    key = await cloud.cloud.store.write(lambda sql: operator_key(sql, cloud))
    person = await signed_in(cloud, key)
    async with person.live("/live/machines", {"origin": f"http://{HOST}"}) as page:
        await cloud.app("delete_key", id=key[0])
        with trio.fail_after(LIMIT):
            message = await page.message()
            while message["type"] != "websocket.close":
                message = await page.message()
    assert message["code"] in (RECONNECT, REFUSED)


async def _closed(machine: Machine) -> dict[str, Any]:
    while True:
        message: dict[str, Any] = await machine._page.message()
        if message["type"] == "websocket.close":
            return message


async def test_the_push_channel_ends_when_the_secret_is_deleted_with_a_reason(cloud: MemoryCloud, part: str) -> None:
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            await machine.hears("document")
            both = (await cloud.app("create_robot_part_secret", part_id=part))["secrets"]
            await cloud.app("delete_robot_part_secret", part_id=part, secret_id=both[-1]["id"])
            message = await _closed(machine)
    assert message["code"] == REFUSED
    assert "rotated or deleted" in message["reason"]


async def test_a_machine_with_a_deleted_secret_gets_no_configuration_before_it_is_checked(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Checks, "start", lambda checks, check: None)  # as slow as can be
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            await machine.hears("document")
            both = (await cloud.app("create_robot_part_secret", part_id=part))["secrets"]
            await cloud.app("delete_robot_part_secret", part_id=part, secret_id=both[-1]["id"])
            await cloud.app("update_robot_part", id=part, robot_config_json='{"debug": true}')
            assert (await _closed(machine))["code"] == REFUSED


async def test_the_push_channel_of_a_deleted_part_says_that_it_is_gone(cloud: MemoryCloud, machine: str) -> None:
    subject = await cloud.app("new_robot_part", robot_id=machine, part_name="arm")
    with trio.fail_after(LIMIT):
        async with connected(cloud, subject) as channel:
            await channel.hears("document")
            await cloud.app("delete_robot_part", part_id=subject)
            message = await _closed(channel)
    assert message["code"] in (GONE, REFUSED)  # depends on which task notices first


async def test_the_push_channel_survives_an_outage_of_the_database(cloud: MemoryCloud, part: str) -> None:
    store = Counted(cloud.cloud.store)
    cloud.cloud = replace(cloud.cloud, store=store)
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            assert await machine.hears("document") == {}
            store.away = True
            cloud.cloud.events.notify_all()  # as a listener does after it reconnects
            await store.refused.wait()
            store.away = False
            await cloud.app("update_robot_part", id=part, name="", robot_config={"components": []})
            assert await machine.hears("document") == {"components": []}


async def test_a_refused_machine_gets_the_reason_in_http(cloud: MemoryCloud, part: str) -> None:
    store = Counted(cloud.cloud.store)
    token = await machine_token(cloud, part)
    cloud.cloud = replace(cloud.cloud, store=store)
    for away, subject, status in ((False, "nothing", 404), (True, part, 503)):
        store.away = away
        headers = {"authorization": f"Bearer {token}"}
        async with browser(cloud).live(f"/machine/v1/follow?part={subject}", headers) as page:
            assert (page.first["type"], page.first["status"]) == ("websocket.http.response.start", status)
            assert (await page.message())["type"] == "websocket.http.response.body"


# ---- open streams per key


async def test_the_streams_of_one_key_are_limited(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.services.target.STREAMS", 2)
    monkeypatch.setattr("cloud.web.common.live.STREAMS", 3)
    ended: list[MachineError] = []
    person = await signed_in(cloud)

    async def tail() -> None:
        try:
            async for _ in cloud.client().stream(APP, "", "tail_robot_part_logs", id=part, errors_only=False):
                raise AssertionError
        except MachineError as error:
            ended.append(error)

    headers = {"origin": f"http://{HOST}"}
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(tail)
            while not ended:
                await trio.testing.wait_all_tasks_blocked(0.01)
            assert [error.kind for error in ended] == [ErrorKind.EXHAUSTED]
            assert "has 2 open streams" in str(ended[0])
            async with person.live("/live/machines", headers) as page:
                await page.patch()
                async with person.live("/live/machines", headers) as another:
                    message = await another.message()
                    assert message["type"] == "websocket.close"
                    assert "has 3 open streams" in message["reason"]
            other = await cloud.cloud.store.write(lambda sql: operator_key(sql, cloud))
            async with (await signed_in(cloud, other)).live("/live/machines", headers) as page:
                await page.patch()
            nursery.cancel_scope.cancel()
    assert not cloud.cloud.openings._open


async def test_the_followers_of_a_part_are_limited(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.web.api.push.FOLLOWERS", 1)
    headers = {"authorization": f"Bearer {await machine_token(cloud, part)}"}
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            await machine.hears("document")
            async with browser(cloud).live(f"/machine/v1/follow?part={part}", headers) as page:
                assert page.first["status"] == 429
                await page.message()
        async with connected(cloud, part) as machine:
            await machine.hears("document")

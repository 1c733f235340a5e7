"""The machine page: live state while it is open, and its buttons."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import trio
import trio.lowlevel

from cloud.domain.fleet import watching
from cloud.domain.fleet.watching import LiveSnapshot
from cloud.domain.machines.logs import LogRecord, append
from cloud.domain.machines.machines import note_seen, part
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, Kind, create_key
from cloud.server.memory import MemoryCloud
from cloud.services.machines.facts import facts
from cloud.store.sql import Sql
from cloud.web.common.closing import GONE
from cloud.web.views.machine_view import snapshot_of
from rpc.carrier import Peer
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import HOST, browser, post, signed_in
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import Browser, LivePage

LIMIT = 30.0
ORIGIN = {"origin": f"http://{HOST}"}
MOTOR, BOARD, SENSOR = "rdk:component:motor/left", "rdk:component:board/pi", "rdk:component:sensor/air"


def live_state(state: str = "ready", **more: Any) -> dict[str, Any]:
    since = "2026-01-01T00:00:00+00:00"
    resources = [
        {"name": BOARD, "state": "ready", "since": since},
        {"name": MOTOR, "state": state, "since": since, "reason": "no pulses", "dependencies": [BOARD]},
    ]
    return {"resources": resources, "state": "running", **more}


class Machine:
    """The machine's end of the push channel."""

    def __init__(self, page: LivePage, send: Any) -> None:
        self._page = page
        self._send = send

    async def hears(self, key: str) -> Any:
        while True:
            message = await self._page.next()
            if key in message:
                return message[key]

    async def says(self, **message: Any) -> None:
        await self.sends(json.dumps(message))

    async def sends(self, text: str) -> None:
        await self._send({"type": "websocket.receive", "text": text})


@asynccontextmanager
async def connected(cloud: MemoryCloud, subject: str) -> AsyncIterator[Machine]:
    """Connect as a machine-server that follows its part."""
    token = await machine_token(cloud, subject)
    client = browser(cloud)
    inner = client.app
    to_app, from_machine = trio.open_memory_channel[Any](10)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async with trio.open_nursery() as nursery:

            async def pass_on() -> None:
                while True:
                    await to_app.send(await receive())

            nursery.start_soon(pass_on)
            await inner(scope, from_machine.receive, send)
            nursery.cancel_scope.cancel()

    client.app = app
    async with client.live(f"/machine/v1/follow?part={subject}", {"authorization": f"Bearer {token}"}) as page:
        assert page.first["type"] == "websocket.accept", page.first
        yield Machine(page, to_app.send)


async def machine_token(cloud: MemoryCloud, subject: str) -> str:
    result = await cloud.cloud.store.read(
        lambda sql: sql.rows("SELECT secret FROM part_secrets WHERE part_id = ?", subject)
    )
    return await cloud.cloud.authenticator.sign_in(subject, "robot-secret", result[0]["secret"], peer=Peer())


async def test_invalid_messages_of_a_machine_do_not_end_the_channel(cloud: MemoryCloud, part: str) -> None:
    await cloud.cloud.store.write(lambda sql: watching.watch(sql, part, cloud.cloud.clock()))
    with trio.fail_after(LIMIT), cloud.cloud.events.listening("live", part) as news:
        async with connected(cloud, part) as follower:
            for text in ("", "no JSON", "[]", "[" * 100_000, '{"live": 5, "report": []}', "7"):
                await follower.sends(text)
            await follower.says(report={"host": "h\ud83e \U0001f916"}, live=live_state("at \udcff"))
            await news.next()
            result = await cloud.cloud.store.read(lambda sql: watching.latest_snapshot(sql, part))
    assert (await reported(cloud, part))["host"] == "h? \U0001f916"
    assert result is not None
    assert result.snapshot["resources"][1]["state"] == "at ?"


async def test_a_machine_is_notified_only_of_keys_that_concern_it(
    cloud: MemoryCloud, part: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, readings = cloud.cloud.store, 0

    def counted(sql: Sql, subject: str, address: Any) -> dict[str, Any]:
        nonlocal readings
        readings += subject == part
        return facts(sql, subject, address)

    monkeypatch.setattr("cloud.services.machines.following.facts", counted)

    async def made(kind: Kind, subject: str) -> str:
        grant = Grant("operator", kind, subject)
        organization = subject if kind == "organization" else cloud.first.organization
        return await store.write(lambda sql: create_key(sql, organization, "key", [grant], cloud.cloud.clock())[0])

    other = await store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    neighbour = await cloud.app("new_robot", name="neighbour", location=cloud.first.location)
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as follower:
            assert set(await follower.hears("keys")) == {cloud.first.id}
            results = {cloud.first.id}
            own: list[tuple[Kind, str]] = [("organization", cloud.first.organization), ("robot", machine)]
            for count, (kind, subject) in enumerate(own, 2):
                await made("organization", other.organization)
                await made("robot", neighbour)
                results.add(await made(kind, subject))
                assert set(await follower.hears("keys")) == results
                assert readings == count


@pytest.fixture
async def person(cloud: MemoryCloud) -> Browser:
    return await signed_in(cloud)


async def test_the_page_is_found_by_the_id_of_the_machine_or_its_part(
    cloud: MemoryCloud, machine: str, part: str, person: Browser
) -> None:
    for subject in (machine, part):
        page = await person.get(f"/machines/{subject}")
        assert page.status == 200
        assert "<h1>rover</h1>" in page.text
        assert "No machine-server has connected yet" in page.text
        assert f"/machines/{part}/logs" in page.text


async def test_the_page_says_how_clients_reach_the_machine(cloud: MemoryCloud, part: str, person: Browser) -> None:
    assert "<dt>Reached</dt>" not in (await person.get(f"/machines/{part}")).text  # it was never connected
    for report, text in (({}, "through this cloud"), ({"webrtc": True}, "by WebRTC, or through this cloud")):
        await cloud.cloud.store.write(lambda sql, report=report: note_seen(sql, part, cloud.cloud.clock(), report))
        assert f"<dt>Reached</dt><dd>{text}</dd>" in (await person.get(f"/machines/{part}")).text


async def test_the_page_of_a_machine_of_another_organization_is_not_found(
    cloud: MemoryCloud, machine: str, part: str
) -> None:
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    await cloud.cloud.authenticator.load()
    stranger = await signed_in(cloud, (other.id, other.key))
    nothing = await stranger.get("/machines/nothing")
    for subject in (machine, part):
        page = await stranger.get(f"/machines/{subject}")
        assert page.status == nothing.status == 404
        for action in ("rename", "restart", "setup", "delete", "parts"):
            assert (await post(stranger, f"/machines/{subject}/{action}", name="rover")).status == 404, action
        async with stranger.live(f"/live/machines/{subject}", ORIGIN) as live:
            assert (await live.message())["code"] == GONE
    watched = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT * FROM live"))
    assert watched == []  # a stranger cannot make a machine report its state


async def test_a_machine_sends_snapshots_only_while_its_page_is_open(
    cloud: MemoryCloud, part: str, person: Browser
) -> None:
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            await machine.hears("document")
            async with person.live(f"/live/machines/{part}", ORIGIN) as page:
                seconds = await machine.hears("watched")
                assert 0 < seconds <= watching.WATCHED.total_seconds()
                await machine.says(live=live_state("unhealthy"))
                while "left" not in (patch := await page.patch()).get("resources", ""):
                    pass
                assert "no pulses" in patch["resources"]
                assert "unhealthy" in patch["graph"]
                assert "<path" in patch["graph"]  # the edge from the board to the motor
                await machine.says(live=live_state("ready"))
                rows = "".join((await page.patch()).values())
                assert "is-ready" in rows


async def test_readings_are_shown_with_numbers(cloud: MemoryCloud, part: str, person: Browser) -> None:
    readings = {SENSOR: {"values": [["temperature", "21.5", 21.5], ["door", "open", None]], "error": ""}}
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine, person.live(f"/live/machines/{part}", ORIGIN) as page:
            await machine.hears("watched")
            await machine.says(live=live_state(readings=readings))
            while not (sensors := (await page.next()).get("sensors")):
                pass
            assert sensors == [
                {"name": SENSOR, "values": [["temperature", "21.5", 21.5], ["door", "open", None]], "error": ""}
            ]


async def test_downloads_of_packages_are_shown_until_they_are_complete(
    cloud: MemoryCloud, part: str, person: Browser
) -> None:
    values = {"name": "acme:smooth", "version": "1.2.0", "done": 1_500_000, "size": 6_000_000}
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine, person.live(f"/live/machines/{part}", ORIGIN) as page:
            await machine.hears("watched")
            await machine.says(live=live_state(downloads=[values, {"name": "b", "done": 999}]))
            while "acme:smooth" not in (patch := await page.patch()).get("downloads", ""):
                pass
            assert all(f' id="{name}"' in html.partition(">")[0] for name, html in patch.items()), patch
            for text in ('value="1500000" max="6000000"', "25 % of 6 MB", "1.2.0", "999 B"):
                assert text in patch["downloads"]
            await machine.says(live=live_state(downloads=[{**values, "done": 7_000_000}]))
            assert "100 % of 6 MB" in (await page.patch())["downloads"]
            await machine.says(live=live_state())
            assert " hidden" in (await page.patch())["downloads"]


async def test_a_reason_links_to_its_line_in_the_editor(
    cloud: MemoryCloud, clock: Clock, part: str, person: Browser
) -> None:
    since = "2026-01-01T00:00:00+00:00"
    where = "components.3.attributes.max_rpm"
    values = {
        "resources": [{"name": MOTOR, "state": "unhealthy", "since": since, "reason": f"{where}: 'fast' <b>"}],
        "problems": [{"path": "components.4", "message": "has no model"}],
    }
    await cloud.cloud.store.write(lambda sql: watching.watch(sql, part, clock()))
    await cloud.cloud.store.write(lambda sql: watching.store_snapshot(sql, part, values, clock()))
    page = (await person.get(f"/machines/{part}")).text
    assert f'<a href="/machines/{part}/config#{where}">{where}</a>: &#39;fast&#39; &lt;b&gt;' in page
    assert f'<a href="/machines/{part}/config#components.4">' in page


async def test_problems_come_first_and_the_title_shows_the_health(
    cloud: MemoryCloud, clock: Clock, part: str, person: Browser
) -> None:
    store = cloud.cloud.store
    await store.write(lambda sql: note_seen(sql, part, clock(), {"unhealthy": 1}))
    await store.write(lambda sql: watching.watch(sql, part, clock()))
    await store.write(lambda sql: watching.store_snapshot(sql, part, live_state("unhealthy"), clock()))
    page = (await person.get(f"/machines/{part}")).text
    assert "<title>● rover: degraded</title>" in page
    assert re.search(r'rel="icon" href="/static/icon-degraded\.svg\?v=', page)
    first, _, rest = page.partition('id="graph"')
    assert f'<a href="/machines/{part}/config#resource=left"><strong>left</strong></a>' in first
    assert "no pulses" in first
    assert "board/pi" not in first
    assert "no pulses" in rest
    await store.write(lambda sql: note_seen(sql, part, clock(), {"unhealthy": 0}))
    await store.write(lambda sql: watching.store_snapshot(sql, part, live_state(), clock()))
    async with person.live(f"/live/machines/{part}", ORIGIN) as opened:
        head = (await opened.patch())["head"]
        assert 'data-title="rover"' in head
        assert "/static/icon.svg" in head
    assert "<title>rover</title>" in (await person.get(f"/machines/{part}")).text
    clock.now += timedelta(hours=1)
    page = (await person.get(f"/machines/{part}")).text
    assert "<title>● rover: offline</title>" in page
    assert "/static/icon-offline.svg" in page


@pytest.mark.parametrize(
    ("report", "link"),
    [
        ({"address": "10.0.0.5:8080", "secure": False}, "http://10.0.0.5:8080/"),
        ({"address": "[fd00::5]:8080", "secure": True}, "https://[fd00::5]:8080/"),
        ({"address": "10.0.0.5:8080"}, ""),
        ({"address": "10.0.0.5:8080", "secure": "yes"}, ""),
        ({"address": "evil.example/x:1", "secure": True}, ""),
        ({"address": 'x" onclick="y:1', "secure": True}, ""),
    ],
)
async def test_the_page_leads_to_the_own_pages_of_the_machine(
    cloud: MemoryCloud, part: str, person: Browser, report: dict[str, Any], link: str
) -> None:
    await cloud.cloud.store.write(lambda sql: note_seen(sql, part, cloud.cloud.clock(), report))
    page = (await person.get(f"/machines/{part}")).text
    assert (f'href="{link}"' in page) == bool(link)
    assert ("Own pages" in page) == bool(link)


async def test_a_machine_knows_its_name(cloud: MemoryCloud, machine: str, part: str, person: Browser) -> None:
    async def name(subject: str) -> str:
        data = await cloud.cloud.store.read(lambda sql: facts(sql, subject))
        return str(data["cloud"]["machine_name"])

    async with connected(cloud, part) as computer:
        assert (await computer.hears("cloud"))["machine_name"] == "rover"
        assert (await post(person, f"/machines/{machine}/rename", name="lander")).status == 303
        assert (await computer.hears("cloud"))["machine_name"] == "lander"
    other = await cloud.app("new_robot_part", robot_id=machine, part_name="arm")
    assert await name(other) == "lander / arm"


async def test_unrequested_snapshots_are_not_kept(cloud: MemoryCloud, part: str) -> None:
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            await machine.says(live=live_state())
            await machine.says(report={"version": "1"})
            while not (await reported(cloud, part)).get("version"):
                await trio.lowlevel.checkpoint()
    assert await cloud.cloud.store.read(lambda sql: watching.latest_snapshot(sql, part)) is None


async def reported(cloud: MemoryCloud, subject: str) -> Any:
    return (await cloud.cloud.store.read(lambda sql: part(sql, subject))).reported


async def test_watching_ends_after_a_while_and_snapshots_are_deleted_later(
    cloud: MemoryCloud, clock: Clock, part: str
) -> None:
    store = cloud.cloud.store
    await store.write(lambda sql: watching.watch(sql, part, clock()))
    assert await store.write(lambda sql: watching.store_snapshot(sql, part, live_state(), clock()))
    clock.now += watching.WATCHED + timedelta(seconds=1)
    assert await store.read(lambda sql: watching.watched(sql, part, clock())) == 0
    assert not await store.write(lambda sql: watching.store_snapshot(sql, part, live_state(), clock()))
    assert await store.read(lambda sql: watching.latest_snapshot(sql, part)) is not None
    assert await store.write(lambda sql: watching.expire(sql, clock())) == 0
    clock.now += watching.FORGOTTEN
    assert await store.write(lambda sql: watching.expire(sql, clock())) == 1
    assert await store.read(lambda sql: watching.latest_snapshot(sql, part)) is None


async def test_closing_one_page_does_not_end_another(cloud: MemoryCloud, clock: Clock, part: str) -> None:
    store, early = cloud.cloud.store, clock()
    clock.now += timedelta(seconds=10)
    await store.write(lambda sql: watching.watch(sql, part, clock()))
    await store.write(lambda sql: watching.watch(sql, part, early))
    left = await store.read(lambda sql: watching.watched(sql, part, clock()))
    assert left > watching.WATCHED.total_seconds() - 1


@pytest.mark.parametrize(
    "hostile",
    [
        {"resources": "all of them"},
        {"resources": [{"name": 5, "state": "ready", "since": "2026-01-01T00:00:00+00:00"}]},
        {"resources": [{"name": "a", "state": "ready", "since": "never"}]},
        {"resources": [{"name": "a", "state": "ready", "since": "2026-01-01T00:00:00"}]},
        {"resources": [{"name": "x" * 3000, "state": "ready", "since": "2026-01-01T00:00:00+00:00"}]},
        {"readings": {"s": {"values": [["a", "b"]]}}},
        {"problems": [{"path": None, "message": "x"}]},
        {"downloads": [{"name": "x", "done": -1}]},
    ],
)
async def test_an_invalid_snapshot_is_ignored(
    cloud: MemoryCloud, clock: Clock, part: str, person: Browser, hostile: dict[str, Any]
) -> None:
    assert snapshot_of(LiveSnapshot(clock(), live_state())) is not None
    assert snapshot_of(LiveSnapshot(clock(), hostile)) is None
    await cloud.cloud.store.write(lambda sql: watching.watch(sql, part, clock()))
    await cloud.cloud.store.write(lambda sql: watching.store_snapshot(sql, part, hostile, clock()))
    assert (await person.get(f"/machines/{part}")).status == 200


async def test_names_in_a_snapshot_are_escaped(cloud: MemoryCloud, clock: Clock, part: str, person: Browser) -> None:
    since = "2026-01-01T00:00:00+00:00"
    evil = {"resources": [{"name": "rdk:component:motor/<img src=x>", "state": "<b>", "since": since}]}
    await cloud.cloud.store.write(lambda sql: watching.watch(sql, part, clock()))
    await cloud.cloud.store.write(lambda sql: watching.store_snapshot(sql, part, evil, clock()))
    page = (await person.get(f"/machines/{part}")).text
    assert "<img" not in page
    assert "<b>" not in page


# ---- buttons


async def test_a_machine_is_renamed(cloud: MemoryCloud, machine: str, person: Browser) -> None:
    assert (await post(person, f"/machines/{machine}/rename", name="plane")).status == 303
    assert (await cloud.app("get_robot", id=machine))["name"] == "plane"
    await cloud.app("new_robot", name="boat", location=cloud.first.location)
    for name, code in (("boat", 409), ("", 400), ("\x07", 400)):
        reply = await post(person, f"/machines/{machine}/rename", name=name)
        assert reply.status == code
        assert 'role="alert"' in reply.text
    assert (await cloud.app("get_robot", id=machine))["name"] == "plane"


async def test_an_offline_machine_shows_its_last_state_and_cannot_be_restarted(
    cloud: MemoryCloud, clock: Clock, part: str, person: Browser
) -> None:
    seen = clock()
    entry = LogRecord(seen, "error", "rdk", "the last words")
    await cloud.cloud.store.write(lambda sql: note_seen(sql, part, seen, {"version": "1"}))
    await cloud.cloud.store.write(lambda sql: append(sql, part, [entry], seen))
    await cloud.cloud.store.write(lambda sql: watching.watch(sql, part, seen))
    readings = {SENSOR: {"values": [["celsius", "20.5", 20.5]]}}
    await cloud.cloud.store.write(lambda sql: watching.store_snapshot(sql, part, live_state(readings=readings), seen))
    online = (await person.get(f"/machines/{part}")).text
    assert "<button>Restart</button>" in online
    assert "the last words" not in online
    clock.now += timedelta(minutes=2)
    offline = (await person.get(f"/machines/{part}")).text
    assert "<button disabled" in offline
    assert ">2026-01-01 00:00:00 UTC</time></dd>" in offline
    assert re.search("This is as of <time [^>]*>2026-01-01 00:00:00 UTC</time>", offline)
    assert "the last words" in offline
    with trio.fail_after(LIMIT):
        async with person.live(f"/live/machines/{part}", ORIGIN) as page:
            while "sensors" not in (message := await page.next()):
                pass
    assert message["sensors"][0]["values"] == [["celsius", "20.5", 20.5]]


async def test_pages_are_addressed_by_the_id_of_the_machine(
    cloud: MemoryCloud, machine: str, part: str, person: Browser
) -> None:
    for page in ("config", "history", "logs?level=warn", "data", "triggers"):
        reply = await person.get(f"/machines/{machine}/{page}")
        assert (reply.status, reply.headers.get("location")) == (303, f"/machines/{part}/{page}")
        assert (await person.get(f"/machines/nobody/{page}")).status == 404
    assert (await person.get(f"/machines/{machine}/nonsense")).status == 404
    assert (await person.get(f"/machines/{machine}")).status == 200


async def test_a_requested_restart_is_sent_to_the_machine(cloud: MemoryCloud, part: str, person: Browser) -> None:
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            reply = await post(person, f"/machines/{part}/restart")
            assert reply.status == 303
            assert await machine.hears("restart") is True
    assert "Restart requested" in (await person.get(reply.headers["location"])).text


async def test_deleting_a_machine_needs_its_name(cloud: MemoryCloud, machine: str, person: Browser) -> None:
    reply = await post(person, f"/machines/{machine}/delete", name="Rover")
    assert reply.status == 400
    assert "not the machine&#39;s name" in reply.text
    assert (await cloud.app("get_robot", id=machine))["name"] == "rover"
    assert (await post(person, f"/machines/{machine}/delete", name="rover")).status == 303
    assert (await person.get(f"/machines/{machine}")).status == 404


async def test_an_additional_part_has_its_own_credentials(
    cloud: MemoryCloud, machine: str, part: str, person: Browser
) -> None:
    reply = await post(person, f"/machines/{machine}/parts", name="arm")
    created = next(item for item in await cloud.app("get_robot_parts", robot_id=machine) if item["name"] == "arm")
    assert created["secret"] in reply.text
    assert ">arm</a>" in (await person.get(f"/machines/{part}")).text
    assert "There is already a part called" in (await post(person, f"/machines/{machine}/parts", name="arm")).text


async def test_an_operator_can_restart_but_not_change_or_see_credentials(
    cloud: MemoryCloud, machine: str, part: str
) -> None:
    guard = await signed_in(cloud, await key_at(cloud, "robot", machine))
    page = (await guard.get(f"/machines/{machine}")).text
    assert "Restart" in page
    assert "Credentials" not in page
    assert "Delete" not in page
    assert (await post(guard, f"/machines/{part}/restart")).status == 303
    for action in ("rename", "setup", "delete", "parts"):
        assert (await post(guard, f"/machines/{machine}/{action}", name="rover")).status == 403, action


async def test_deleting_a_machine_ends_its_open_page(
    cloud: MemoryCloud, machine: str, part: str, person: Browser
) -> None:
    with trio.fail_after(LIMIT):
        async with person.live(f"/live/machines/{part}", ORIGIN) as page:
            await page.patch()
            await cloud.app("delete_robot", id=machine)
            while (message := await page.message())["type"] != "websocket.close":
                pass
            assert message["code"] == GONE

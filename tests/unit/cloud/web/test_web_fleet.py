"""The fleet view: which machines it shows to whom, and live updates while it is open."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import trio

from cloud.domain.machines import machines
from cloud.domain.machines.machines import note_seen
from cloud.domain.triggering.presence import came_online, went_offline
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from cloud.web.common.closing import RECONNECT
from cloud.web.views.fleet.fleet_view import PAGE
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import HOST, browser, post, signed_in

LIMIT = 30.0
ORIGIN = {"origin": f"http://{HOST}"}


async def report(cloud: MemoryCloud, part: str, **reported: Any) -> None:
    await cloud.cloud.store.write(lambda sql: note_seen(sql, part, cloud.cloud.clock(), reported or None))


async def part_of(cloud: MemoryCloud, machine: str) -> str:
    result: str = (await cloud.app("get_robot_parts", robot_id=machine))[0]["id"]
    return result


async def key_at(cloud: MemoryCloud, kind: str, subject: str, role: str = "operator") -> tuple[str, str]:
    grant = {"authorization_id": f"{kind}_{role}", "resource_type": kind, "resource_id": subject}
    key = await cloud.app("create_key", authorizations=[grant], name="guard")
    return key["id"], key["key"]


def machine_rows(page: str) -> list[str]:
    return re.findall(r'<tr id="(\w+)"', page)


async def test_without_a_key_pages_redirect_to_the_login(cloud: MemoryCloud) -> None:
    reply = await browser(cloud).get("/")
    assert (reply.status, reply.headers["location"]) == (303, "/login?next=/")


async def test_every_machine_is_listed_with_state_and_version(cloud: MemoryCloud, machine: str) -> None:
    part = await part_of(cloud, machine)
    await cloud.app("new_robot", name="other", location=cloud.first.location)
    await report(cloud, part, version="1.2.3", revision="1", problems=2, unhealthy=1)
    await cloud.app("update_robot_part", id=part, robot_config_json='{"components": []}')
    page = (await (await signed_in(cloud)).get("/")).text
    for text in ("rover", "other", "awaiting setup", "online", "1.2.3", "1 of 2", ">3<"):
        assert text in page


async def test_numbers_of_computers_are_columns(cloud: MemoryCloud, machine: str) -> None:
    part = await part_of(cloud, machine)
    odd = {"memory_pct": "<b>", "disk_pct": float("inf"), "temperature_c": -4.4}
    await report(cloud, part, processor_pct=12.6, **odd)
    page = (await (await signed_in(cloud)).get("/?columns=processor,memory,disk,temperature")).text
    cells = re.findall(r'data-label="(processor|memory|disk|temperature)">(?:<[^>]*>)?([^<]*)', page)
    numbers = {name: value.replace("\N{NO-BREAK SPACE}", " ") for name, value in cells}
    assert numbers == {"processor": "13 %", "memory": "–", "disk": "–", "temperature": "-4 °C"}


async def test_pages_have_no_inline_scripts_and_are_not_cached(cloud: MemoryCloud, machine: str) -> None:
    person = await signed_in(cloud)
    reply = await person.get("/")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert reply.headers["cache-control"] == "no-store"
    assert " style=" not in reply.text
    assert "<script>" not in reply.text
    urls = [part.partition('"')[0] for part in reply.text.split('="')[1:] if part.startswith("/static/")]
    assert len(urls) > 4
    for url in urls:
        answer = await person.get(url)
        assert (answer.status, "immutable" in answer.headers["cache-control"]) == (200, True), url


async def test_a_key_of_one_machine_sees_only_that_machine(cloud: MemoryCloud, machine: str) -> None:
    await cloud.app("new_robot", name="secret-one", location=cloud.first.location)
    person = await signed_in(cloud, await key_at(cloud, "robot", machine))
    page = (await person.get("/")).text
    assert "rover" in page
    assert "secret-one" not in page
    assert "New machine" not in page


async def test_a_key_of_a_location_sees_everything_below_it(cloud: MemoryCloud, machine: str) -> None:
    hall = await cloud.app("create_location", organization_id=cloud.first.organization, name="hall")
    room = await cloud.app(
        "create_location", organization_id=cloud.first.organization, name="room", parent_location_id=hall["id"]
    )
    await cloud.app("new_robot", name="below", location=room["id"])
    person = await signed_in(cloud, await key_at(cloud, "location", hall["id"], "owner"))
    page = (await person.get("/")).text
    assert "below" in page
    assert "hall / room" in page
    assert "rover" not in page
    assert "New machine" in page


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("q=ov", {"rover", "oven"}),
        ("q=OVEN", {"oven"}),
        ("q=ov+rov", {"rover"}),
        ("state=online", {"oven"}),
        ("state=awaiting", {"rover", "pump"}),
        ("location=nowhere", set()),
        ("q=1.2.3", {"oven"}),
        ("sort=no-such", {"rover", "oven", "pump"}),
    ],
)
async def test_search_and_filters_without_a_script(
    cloud: MemoryCloud, machine: str, query: str, shown: set[str]
) -> None:
    oven = await cloud.app("new_robot", name="oven", location=cloud.first.location)
    await cloud.app("new_robot", name="pump", location=cloud.first.location)
    await report(cloud, await part_of(cloud, oven), version="1.2.3")
    page = (await (await signed_in(cloud)).get(f"/?{query}")).text
    assert {name for name in ("rover", "oven", "pump") if f">{name}</a>" in page} == shown


async def test_sorted_by_state_machines_with_problems_come_first(
    cloud: MemoryCloud, clock: Clock, machine: str
) -> None:
    online = await cloud.app("new_robot", name="a-online", location=cloud.first.location)
    await report(cloud, await part_of(cloud, machine))
    first = await part_of(cloud, machine)
    await cloud.cloud.store.write(lambda sql: came_online(sql, [first], clock()))
    clock.now += timedelta(minutes=5)
    await cloud.cloud.store.write(lambda sql: went_offline(sql, [first], clock()))
    await report(cloud, await part_of(cloud, online))
    person = await signed_in(cloud)
    by_name, by_state = (await person.get("/")).text, (await person.get("/?sort=state")).text
    assert by_name.index(">a-online</a>") < by_name.index(">rover</a>")
    assert by_state.index(">rover</a>") < by_state.index(">a-online</a>")


async def test_many_machines_are_paged_and_a_page_beyond_the_end_is_the_last(cloud: MemoryCloud) -> None:
    def many(sql: Sql) -> None:
        for number in range(2 * PAGE + 5):
            machines.create_machine(sql, cloud.first.location, f"m{number:03}", cloud.cloud.clock())

    await cloud.cloud.store.write(many)
    person = await signed_in(cloud)

    async def shown(query: str) -> tuple[list[str], list[str]]:
        text = (await person.get(f"/?{query}")).text
        return re.findall(r">(m\d+)</a>", text), re.findall(r'<a href="([^"]+)" rel="(?:prev|next)"', text)

    names = [f"m{number:03}" for number in range(2 * PAGE + 5)]
    first, (second,) = await shown("")
    assert first == names[:PAGE]
    shown_second, (back, third) = await shown(second.removeprefix("/?").replace("&amp;", "&"))
    assert shown_second == names[PAGE : 2 * PAGE]
    assert await shown(back.removeprefix("/?")) == (first, [second])
    last = third.removeprefix("/?")
    assert (await shown(last))[0] == names[2 * PAGE :]
    assert await shown("after=nonsense&q=m00") == (names[:10], [])
    assert f"{PAGE} of {len(names)} machines" in (await person.get("/")).text
    with trio.fail_after(LIMIT):
        async with person.live(f"/live/machines?{last}", ORIGIN) as page:
            patch = await page.patch()
            assert ("m200" in patch["machines"], "m100" in patch["machines"]) == (True, False)


async def test_names_are_escaped(cloud: MemoryCloud) -> None:
    await cloud.app("new_robot", name="<script>alert(1)</script>", location=cloud.first.location)
    page = (await (await signed_in(cloud)).get("/")).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


# ---- a new machine


async def test_a_new_machine_has_a_credentials_file(cloud: MemoryCloud) -> None:
    person = await signed_in(cloud)
    reply = await post(person, "/machines", name="drone", location=cloud.first.location)
    assert reply.status == 200
    answer = await cloud.app("list_robots", location_id=cloud.first.location)
    part = (await cloud.app("get_robot_parts", robot_id=answer[0]["id"]))[0]
    for text in (part["id"], part["secret"], f"http://{HOST}", "machine-server -config machine.json"):
        assert text in reply.text


async def test_a_used_name_is_reported_in_the_form_which_keeps_its_values(cloud: MemoryCloud, machine: str) -> None:
    reply = await post(await signed_in(cloud), "/machines", name="rover", location=cloud.first.location)
    assert reply.status == 409
    assert "There is already a machine called" in reply.text
    assert 'value="rover"' in reply.text


async def test_an_operator_cannot_create_a_machine(cloud: MemoryCloud) -> None:
    person = await signed_in(cloud, await key_at(cloud, "location", cloud.first.location))
    reply = await post(person, "/machines", name="drone", location=cloud.first.location)
    assert reply.status == 403
    assert await cloud.app("list_robots", location_id=cloud.first.location) == []


async def test_a_form_of_another_site_is_refused(cloud: MemoryCloud) -> None:
    person = await signed_in(cloud)
    reply = await person.send("POST", "/machines", {"origin": "http://evil.example"}, b"name=x")
    assert reply.status == 403


# ---- live


async def test_rows_follow_the_reports_of_machines(cloud: MemoryCloud, machine: str) -> None:
    person = await signed_in(cloud)
    part = await part_of(cloud, machine)
    with trio.fail_after(LIMIT):
        async with person.live("/live/machines", ORIGIN) as page:
            assert set(await page.patch()) == {"counts", "machines", "pager"}
            await report(cloud, part, version="9.9")
            patch = await page.patch()
            (row,) = (html for piece, html in patch.items() if piece != "counts")
            assert "9.9" in row
            assert "online" in row
            await report(cloud, part, version="9.10")
            assert "9.10" in "".join((await page.patch()).values())


async def test_an_online_machine_with_problems_is_degraded(cloud: MemoryCloud, machine: str) -> None:
    person = await signed_in(cloud)
    subject = await part_of(cloud, machine)
    await report(cloud, subject, unhealthy=1, waiting=2)
    fleet = (await person.get("/")).text
    assert '<span class="state is-degraded">degraded</span>' in fleet
    assert f'<a class="is-unhealthy" href="/machines/{subject}#resources">3</a>' in fleet
    overview = (await person.get(f"/machines/{subject}")).text
    assert "3 problems</a>" in overview
    assert "is-online" not in overview
    assert machine_rows(fleet) == machine_rows((await person.get("/?state=degraded")).text)
    assert machine_rows((await person.get("/?state=online")).text) == []
    await report(cloud, subject, unhealthy=0, waiting=0)
    assert '<span class="state is-online">online</span>' in (await person.get("/")).text
    await report(cloud, subject, rejected="not JSON")
    assert "is-degraded" in (await person.get(f"/machines/{subject}")).text


async def test_machines_are_added_renamed_and_deleted(cloud: MemoryCloud, machine: str) -> None:
    person = await signed_in(cloud)
    with trio.fail_after(LIMIT):
        async with person.live("/live/machines", ORIGIN) as page:
            await page.patch()
            created = await cloud.app("new_robot", name="drone", location=cloud.first.location)
            assert "drone" in (await page.patch())["machines"]
            await cloud.app("update_robot", id=created, name="plane", location=cloud.first.location)
            assert "plane" in "".join((await page.patch()).values())
            await cloud.app("delete_robot", id=created)
            assert "plane" not in (await page.patch())["machines"]


async def test_a_silent_machine_goes_offline_without_a_message(cloud: MemoryCloud, clock: Clock, machine: str) -> None:
    person = await signed_in(cloud)
    await report(cloud, await part_of(cloud, machine))
    clock.now += timedelta(seconds=59, milliseconds=700)
    with trio.fail_after(LIMIT):
        async with person.live("/live/machines", ORIGIN) as page:
            assert "online" in (await page.patch())["machines"]
            clock.now += timedelta(seconds=1)
            assert "offline" in "".join((await page.patch()).values())


async def test_changes_of_another_organization_are_not_sent(cloud: MemoryCloud, machine: str) -> None:
    from cloud.domain.organizations.first import create_owner

    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    person = await signed_in(cloud)
    with trio.fail_after(LIMIT):
        async with person.live("/live/machines", ORIGIN) as page:
            await page.patch()
            theirs = await cloud.cloud.store.write(
                lambda sql: machines.create_machine(sql, other.location, "foreign", cloud.cloud.clock())
            )
            await cloud.cloud.store.write(
                lambda sql: note_seen(sql, machines.parts(sql, theirs)[0].id, clock_of(cloud))
            )
            await report(cloud, await part_of(cloud, machine), version="7.7")
            patch = await page.patch()
            assert "7.7" in "".join(patch.values())
            assert "foreign" not in "".join(patch.values())


def clock_of(cloud: MemoryCloud) -> Any:
    return cloud.cloud.clock()


async def test_deleting_a_key_ends_the_streams_of_its_pages(cloud: MemoryCloud, machine: str) -> None:
    key = await key_at(cloud, "robot", machine)
    person = await signed_in(cloud, key)
    with trio.fail_after(LIMIT):
        async with person.live("/live/machines", ORIGIN) as page:
            await page.patch()
            await cloud.app("delete_key", id=key[0])
            message = await page.message()
            assert (message["type"], message["code"]) == ("websocket.close", RECONNECT)
    assert (await person.get("/")).status == 303


# ---- error messages


async def test_a_missing_page(cloud: MemoryCloud) -> None:
    person = await signed_in(cloud)
    reply = await person.get("/no/such")
    assert reply.status == 404
    assert "There is no page /no/such" in reply.text
    assert (await person.get("/no/such", {"accept": "application/json"})).json() == {
        "error": "there is no page /no/such"
    }
    assert (await person.get("/machines")).status == 405


async def test_a_form_that_is_too_large(cloud: MemoryCloud) -> None:
    person = await signed_in(cloud)
    reply = await person.send("POST", "/machines", {**ORIGIN, "accept": "text/html"}, b"name=" + b"x" * (5 << 20))
    assert reply.status == 400
    assert "larger than 4 MiB" in reply.text

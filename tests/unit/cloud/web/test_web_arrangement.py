"""The arrangement of cards of a machine, kept by the cloud: who may arrange, what is refused, deletion."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from cloud.domain.fleet import arrangements
from cloud.domain.machines.machines import note_seen
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.permissions import audit
from cloud.domain.permissions.audit import AuditQuery
from cloud.server.memory import MemoryCloud
from tests.unit.cloud.captured import START
from tests.unit.cloud.pages import HOST, signed_in
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import Browser, Reply

ARRANGED = {"hidden": ["component:motor/left"], "order": ["component:sensor/thermometer"]}


async def props(browser: Browser, part: str) -> dict[str, Any]:
    (text,) = re.findall(r'data-props="([^"]*)"', (await browser.get(f"/machines/{part}/control")).text)
    properties: dict[str, Any] = json.loads(html.unescape(text))
    return properties


async def arrange(browser: Browser, part: str, value: object = ARRANGED, origin: str = f"http://{HOST}") -> Reply:
    headers = {"origin": origin, "content-type": "application/json"}
    return await browser.send("POST", f"/machines/{part}/control/cards", headers, json.dumps(value).encode())


async def test_the_page_of_a_machine_that_was_never_online_says_so(cloud: MemoryCloud, part: str) -> None:
    page = (await (await signed_in(cloud)).get(f"/machines/{part}/control")).text
    assert "The machine has never been online" in page
    assert "data-away" in page
    await cloud.cloud.store.write(lambda sql: note_seen(sql, part, cloud.cloud.clock()))
    assert "data-away" not in (await (await signed_in(cloud)).get(f"/machines/{part}/control")).text


async def test_operators_arrange_for_everyone(cloud: MemoryCloud, machine: str, part: str) -> None:
    operator = await signed_in(cloud, await key_at(cloud, "robot", machine))
    assert (await props(operator, part))["cards"] == ""
    assert (await arrange(operator, part)).status == 204
    seen = await props(await signed_in(cloud), part)
    assert json.loads(seen["cards"]) == ARRANGED
    assert seen["arrange"] == f"/machines/{part}/control/cards"


async def test_guests_see_it_and_arrange_in_their_browser_only(cloud: MemoryCloud, part: str) -> None:
    assert (await arrange(await signed_in(cloud), part)).status == 204
    store = cloud.cloud.store
    guest = (await store.write(lambda sql: create_owner(sql, "Guest", START))).organization
    stranger = (await store.write(lambda sql: create_owner(sql, "Stranger", START))).organization
    await cloud.app("share_location", location_id=cloud.first.location, organization_id=guest)
    keys = [
        await store.write(lambda sql, at=at: create_key(sql, at, "o", [Grant("owner", "organization", at)], START))  # type: ignore[misc]
        for at in (guest, stranger)
    ]
    guests, strangers = [await signed_in(cloud, key) for key in keys]
    shown = await props(guests, part)
    assert (json.loads(shown["cards"]), shown["arrange"]) == (ARRANGED, "")
    assert (await arrange(guests, part, {"hidden": [], "order": []})).status == 403
    assert (await arrange(strangers, part)).status == 404
    assert json.loads((await props(guests, part))["cards"]) == ARRANGED


async def test_wrong_arrangements_and_other_sites_are_refused(cloud: MemoryCloud, part: str) -> None:
    owner = await signed_in(cloud)
    reply = await arrange(owner, part, {"hidden": [1], "order": []})
    assert (reply.status, "hidden.0" in reply.json()["error"]) == (400, True)
    assert (await arrange(owner, part, origin="http://evil.example")).status == 403
    assert (await props(owner, part))["cards"] == ""


async def test_it_is_deleted_with_the_machine(cloud: MemoryCloud, machine: str, part: str) -> None:
    assert (await arrange(await signed_in(cloud), part)).status == 204
    await cloud.app("delete_robot", id=machine)
    assert await cloud.cloud.store.read(lambda sql: arrangements.arrangement(sql, part)) == ""


async def test_changes_in_a_row_are_a_single_entry_of_the_audit_log(cloud: MemoryCloud, part: str) -> None:
    owner = await signed_in(cloud)
    for _ in range(3):
        assert (await arrange(owner, part)).status == 204
    query = AuditQuery(action="set_arrangement")
    entries = await cloud.cloud.store.read(lambda sql: audit.entries(sql, cloud.first.organization, query))
    assert [(entry.subject, entry.detail["times"]) for entry in entries] == [(part, 3)]

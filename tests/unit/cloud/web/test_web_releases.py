"""The page of releases: versions, rollouts, and who may change them."""

from __future__ import annotations

import html
from datetime import timedelta
from pathlib import Path

import pytest

from cloud.domain.organizations.keys import Grant, create_key
from cloud.server.memory import MemoryCloud
from cloud.services.releases import importing
from cloud.services.releases.sources import Sources
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import post, signed_in
from tests.unit.cloud.release_help import SERVER, opened, publish
from tests.unit.cloud.services.releases.test_importing import write
from tests.unit.cloud.services.releases.test_rollouts import report, send
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import HTML

ROLL_OUT = 'Roll out<span class="visually-hidden">'
VERSION = {"program": SERVER, "version": "2.0.0"}


async def test_from_an_empty_page_to_a_finished_rollout(cloud: MemoryCloud, part: str) -> None:
    person, owner = await signed_in(cloud), cloud.first.organization
    assert "Import version " in (await person.get("/releases")).text
    publisher = await opened(cloud)
    assert "There are no versions yet" in (await person.get("/releases")).text
    publisher.add("1.0.0", b"program 1.0.0", ("stable", "dev"))
    publisher.add("2.0.0", b"program 2.0.0")
    await publish(cloud, publisher)
    page = (await person.get("/releases")).text
    assert f"{ROLL_OUT} machine-server 2.0.0<" in page
    assert f"{ROLL_OUT} machine-server 1.0.0<" not in page  # it is released to all machines
    form = {**VERSION, "organization": owner}
    reply = await post(person, "/releases", **form, percent="10", tags="lab, roof", stop_after="2")
    assert (reply.status, reply.headers["location"]) == (303, "/releases")
    page = (await person.get("/releases")).text
    assert "10 % of tag lab or roof" in page
    assert "stops above 2" in page
    for state, button in (("paused", "Resume"), ("stopped", "Resume"), ("active", "Pause")):
        assert (await post(person, "/releases", **form, state=state)).status == 303
        assert f'aria-label="{button}: machine-server 2.0.0"' in (await person.get("/releases")).text
    await send(cloud, part, report("2.0.0", "rolled_back"))
    assert "1 rolled back" in (await person.get("/releases")).text
    detail = (await person.get(f"/releases/{owner}/{SERVER}/2.0.0")).text
    assert "it did not serve" in detail
    assert f"/machines/{part}" in detail
    assert (await post(person, "/releases", **form, state="finished")).status == 303
    page = (await person.get("/releases")).text
    assert "Finished rollouts" in page
    assert "aria-label=" not in page.partition("Finished rollouts")[2]
    reply = await post(person, "/releases", **form, state="paused")
    assert (reply.status, "is finished: all machines get" in reply.text) == (409, True)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"percent": "all"}, "'all' is not a number"),
        ({"percent": "0"}, "must be above 0"),
        ({"percent": "10", "stop_after": "-1"}, "'-1' is not a number"),
        ({"percent": "1e999"}, "is not a number"),
        ({"state": "gone"}, "no state 'gone'"),
    ],
)
async def test_a_form_that_is_not_valid(cloud: MemoryCloud, form: dict[str, str], words: str) -> None:
    await opened(cloud, "2.0.0")
    person = await signed_in(cloud)
    reply = await post(person, "/releases", organization=cloud.first.organization, **VERSION, **form)
    assert (reply.status, words in html.unescape(reply.text)) == (400, True)


async def test_operators_only_look_and_other_sites_cannot_send_forms(cloud: MemoryCloud) -> None:
    await opened(cloud, "2.0.0")
    owner, now = cloud.first.organization, cloud.cloud.clock()
    grants = [Grant("operator", "organization", owner)]
    key = await cloud.cloud.store.write(lambda sql: create_key(sql, owner, "op", grants, now))
    person = await signed_in(cloud, key)
    page = (await person.get("/releases")).text
    assert "2.0.0" in page
    assert "Roll out" not in page
    assert (await post(person, "/releases", organization=owner, **VERSION, percent="10")).status == 403
    first = await signed_in(cloud)
    foreign = {**HTML, "origin": "http://evil.test", "content-type": "application/x-www-form-urlencoded"}
    assert (await first.send("POST", "/releases", foreign, b"state=paused")).status == 403


async def test_metadata_that_expires_soon_is_marked(cloud: MemoryCloud, clock: Clock) -> None:
    await opened(cloud, "2.0.0")
    marked = "renew it with machine cloud releases rotate"
    assert marked not in (await (await signed_in(cloud)).get("/releases")).text
    clock.now += timedelta(days=280)
    assert marked in (await (await signed_in(cloud)).get("/releases")).text


async def test_programs_are_imported_with_a_button(cloud: MemoryCloud, tmp_path: Path) -> None:
    person, owner = await signed_in(cloud), cloud.first.organization
    reply = await post(person, "/releases", **{"organization": owner, "import": "yes"})
    assert (reply.status, reply.headers["location"]) == (303, "/releases")
    assert "Looking for release files" in (await person.get("/releases")).text
    assert await importing.run_next(cloud.cloud, Sources(tmp_path, None, "1.0.0"))
    page = html.unescape((await person.get("/releases")).text)
    assert "No release could be imported" in page
    assert f"into {tmp_path} and try again" in page
    assert await post(person, "/releases", **{"organization": owner, "import": "yes"})
    assert await importing.run_next(cloud.cloud, write(tmp_path, "x86_64"))
    page = html.unescape((await person.get("/releases")).text)
    assert "Version 1.0.0 is ready for linux/x86_64" in page
    assert "machine-agent 1.0.0" in page
    assert "The cloud keeps the keys" in page


async def test_only_owners_import(cloud: MemoryCloud) -> None:
    owner = cloud.first.organization
    person = await signed_in(cloud, await key_at(cloud, "organization", owner))
    page = (await person.get("/releases")).text
    assert "An owner of the organization can import them" in page
    assert (await post(person, "/releases", **{"organization": owner, "import": "yes"})).status == 403
    await opened(cloud, "1.0.0")
    assert "Programs of this cloud" not in (await person.get("/releases")).text

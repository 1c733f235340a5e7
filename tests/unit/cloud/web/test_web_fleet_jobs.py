"""Pages of work on many machines, tags and saved views."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
import trio

from cloud.domain.machines.machines import note_seen
from cloud.server.memory import MemoryCloud
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.cloud.services.fleet.fleet_help import ARM, SPEED, call, configuration, fill, finish, main_part
from tests.unit.runtime.parts.web.client import HTML, Browser, Reply

ORIGIN = {"origin": f"http://{HOST}"}
VALUE = {"kind": "set_value", "path": "components.arm.attributes.speed", "value": "3"}


async def send(person: Browser, path: str, *fields: tuple[str, str]) -> Reply:
    headers = {**HTML, **ORIGIN, "content-type": "application/x-www-form-urlencoded"}
    return await person.send("POST", path, headers, urlencode(fields).encode())


async def test_a_selection_is_previewed_started_watched_and_undone(cloud: MemoryCloud) -> None:
    ids = await fill(cloud, 3, ARM)
    person = await signed_in(cloud)
    page = (await person.get("/")).text
    assert page.count('name="machine"') == 3
    selection = [("machine", ids[0]), ("machine", ids[1])]
    nothing = await send(person, "/fleet/new", ("query", ""))
    assert (nothing.status, "No machine is selected" in nothing.text) == (400, True)
    assert "Change 2 selected machines" in (await send(person, "/fleet/new", *selection)).text
    preview = (await send(person, "/fleet/preview", *selection, *VALUE.items())).text
    assert "<strong>2</strong> of 2 machines will change" in preview
    assert "On m000, for example" in preview
    reply = await send(person, "/fleet/start", *selection, *VALUE.items(), ("expected", "2"))
    assert reply.status == 303
    job = reply.headers["location"]
    with trio.fail_after(30):
        async with person.live(f"/live{job}", ORIGIN) as live:
            assert "running" in (await live.patch())["job-state"]
            await finish(cloud)
            while "done" not in (patch := await live.patch()).get("job-state", ""):
                pass
    assert "2 of 2 machines" in patch["job-state"]
    assert [(await configuration(cloud, each)) == ARM for each in ids] == [False, False, True]
    shown = (await person.get(job)).text
    assert "Undo on 2 machines" in shown
    assert "No machine has this outcome" in (await person.get(f"{job}?state=failed")).text
    assert (await post(person, f"{job}/undo")).status == 303
    await finish(cloud)
    assert [(await configuration(cloud, each)) == ARM for each in ids] == [True, True, True]
    listed = (await person.get("/fleet")).text
    assert "Undo: set components.arm.attributes.speed to 3" in listed


async def test_all_machines_that_match_are_chosen_by_their_query(cloud: MemoryCloud) -> None:
    ids = await fill(cloud, 3)
    await call(cloud, "add_machine_tags", machine_id=ids[2], tags=["red"])
    person = await signed_in(cloud)
    fields = [("query", "tag=red"), ("all", "yes"), ("machine", ids[0]), ("kind", "add_tags"), ("tags", "a, b")]
    assert "<strong>1</strong> of 1 machines will change" in (await send(person, "/fleet/preview", *fields)).text
    await send(person, "/fleet/start", *fields)
    await finish(cloud)
    assert await call(cloud, "list_machine_tags", machine_id=ids[2]) == ["a", "b", "red"]
    assert await call(cloud, "list_machine_tags", machine_id=ids[0]) == []


@pytest.mark.parametrize("action", ["preview", "start"])
async def test_a_mistake_keeps_the_form(cloud: MemoryCloud, machine: str, action: str) -> None:
    person = await signed_in(cloud)
    fields = [("machine", machine), *(VALUE | {"value": "fast"}).items()]
    reply = await send(person, f"/fleet/{action}", *fields)
    assert reply.status == 400
    assert "The value is not JSON" in reply.text
    assert 'value="fast"' in reply.text
    assert machine in reply.text


async def test_a_job_is_stopped_and_another_organization_does_not_see_it(cloud: MemoryCloud, machine: str) -> None:
    job = await call(cloud, "start_fleet_job", machine_ids=[machine], work=SPEED)
    person = await signed_in(cloud)
    assert (await post(person, f"/fleet/{job}/stop")).status == 303
    assert "The job was stopped before" in (await person.get(f"/fleet/{job}")).text
    assert (await post(person, f"/fleet/{job}/undo")).status == 409
    assert (await post(person, f"/fleet/{job}/explode")).status == 404


async def test_operators_select_nothing(cloud: MemoryCloud, machine: str) -> None:
    grant = {
        "authorization_id": "organization_operator",
        "resource_type": "organization",
        "resource_id": cloud.first.organization,
    }
    key = await cloud.app("create_key", authorizations=[grant], name="guard")
    person = await signed_in(cloud, (key["id"], key["key"]))
    page = (await person.get("/")).text
    assert "rover" in page
    assert 'name="machine"' not in page
    assert (await send(person, "/fleet/preview", ("machine", machine), *VALUE.items())).status == 403
    assert "No work on many machines yet" in (await person.get("/fleet")).text


async def test_tags_are_added_and_removed_on_the_page_of_a_machine(cloud: MemoryCloud, machine: str) -> None:
    person = await signed_in(cloud)
    assert (await post(person, f"/machines/{machine}/tags", add="red, big")).status == 303
    page = (await person.get(f"/machines/{machine}")).text
    assert "Remove the tag red" in page
    assert 'href="/?tag=red"' in page
    assert "rover" in (await person.get("/?tag=red")).text
    await post(person, f"/machines/{machine}/tags", remove="red")
    assert await call(cloud, "list_machine_tags", machine_id=machine) == ["big"]
    assert "is not a tag" in (await post(person, f"/machines/{machine}/tags", add="\u202e")).text


async def test_fragments_are_shown_with_the_revision_that_runs(cloud: MemoryCloud) -> None:
    (machine,) = await fill(cloud, 1, ARM)
    owner = cloud.first.organization
    fragment = (await cloud.app("create_fragment", organization_id=owner, name="base", config={"services": []}))["id"]
    await call(cloud, "start_fleet_job", machine_ids=[machine], work={"kind": "add_fragment", "fragment_id": fragment})
    await finish(cloud)
    person = await signed_in(cloud)
    assert ">base</td>" in (await person.get("/?columns=fragments")).text
    part = await main_part(cloud, machine)
    reported = {"revision": f"3+{fragment[:8]}-1"}
    await cloud.cloud.store.write(lambda sql: note_seen(sql, part, cloud.cloud.clock(), reported))
    assert ">base 1</td>" in (await person.get("/?columns=fragments")).text


async def test_columns_narrow_rows_and_views(cloud: MemoryCloud, machine: str) -> None:
    person = await signed_in(cloud)
    page = (await person.get("/?columns=state&columns=platform&dense=yes")).text
    heads = re.findall(r"<th[^>]*>(?:<a[^>]*>)?([^<]+)", page)
    assert heads == ["Machine", "State", "Platform"]
    assert 'class="fleet stack dense"' in page
    saved = "state=awaiting&columns=state%2Cplatform"
    reply = await post(person, "/fleet/views", query=saved, name="New ones", shared="yes")
    assert (reply.status, reply.headers["location"]) == (303, f"/?{saved}")
    page = (await person.get(f"/?{saved}")).text
    view = re.search(r"/fleet/views/([^/]+)/delete", page)
    assert view is not None
    assert ">New ones</a>" in (await person.get("/")).text
    await post(person, f"/fleet/views/{view[1]}/delete")
    assert "New ones" not in (await person.get("/")).text


async def test_the_values_of_the_first_machine_are_suggested_without_secrets(cloud: MemoryCloud) -> None:
    attributes = {"speed": 1, "password": "hush", "hook": {"type": "webhook", "value": "https://hooks.example/hush"}}
    secret = {
        "components": [{**ARM["components"][0], "attributes": attributes}],
        "modules": [{"name": "m", "executable_path": "/m", "env": {"FOO": "hush"}}],
        "agent": {"advanced_settings": {"viam_server_env": {"FOO": "hush"}}},
    }
    (machine,) = await fill(cloud, 1, secret)
    page = (await send(await signed_in(cloud), "/fleet/new", ("machine", machine))).text
    assert '<option value="components.arm.attributes.speed">now 1</option>' in page
    for path in ("components.arm.attributes.password", "modules.m.env.FOO"):
        assert f'<option value="{path}">now ***</option>' in page
    assert "hush" not in page


async def test_operators_get_no_suggestions(cloud: MemoryCloud) -> None:
    (machine,) = await fill(cloud, 1, ARM)
    grant = {
        "resource_type": "organization",
        "resource_id": cloud.first.organization,
        "authorization_id": "organization_operator",
        "organization_id": cloud.first.organization,
        "identity_id": "",
        "authorization_type": "role",
    }
    created = await cloud.app("create_key", authorizations=[grant], name="guard")
    page = await send(await signed_in(cloud, (created["id"], created["key"])), "/fleet/new", ("machine", machine))
    assert "attributes.speed" not in page.text.replace("such as components.arm.attributes.speed", "")

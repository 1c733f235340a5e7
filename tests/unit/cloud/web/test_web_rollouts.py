"""`/rollouts`: the list, the form with its preview, one rollout with its buttons, and versions by machine."""

from __future__ import annotations

import re

from cloud.server.memory import MemoryCloud
from tests.unit.cloud.pages import post, signed_in
from tests.unit.cloud.services.rollouts.rollout_help import call, document, fleet, fragment, plan, proceed, save
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import Browser


async def prepared(cloud: MemoryCloud, count: int = 4) -> tuple[Browser, str, str]:
    subject = await fragment(cloud)
    await fleet(cloud, count, subject)
    return await signed_in(cloud), subject, await save(cloud, subject)


def form(cloud: MemoryCloud, subject: str, revision: str, **more: str) -> dict[str, str]:
    what = f"{cloud.first.organization}/fragment/{subject}/"
    return {"what": what, "revision": revision, "stages": "25, 100 %", "soak": "10", "stop_after": "1", **more}


async def test_a_rollout_from_the_form_to_the_way_back(cloud: MemoryCloud) -> None:
    person, subject, new = await prepared(cloud)
    assert "No change was rolled out yet" in (await person.get("/rollouts")).text
    shown = await post(person, "/rollouts/new", **form(cloud, subject, new))
    assert "1. 25 %" in shown.text
    assert "4 of 4 machines are selected" in shown.text
    assert "Start with 1 machine" in shown.text
    started = await post(person, "/rollouts/new", **form(cloud, subject, new, start="yes", expected="4"))
    assert started.status == 303
    path = started.headers["location"]
    listed = await person.get("/rollouts")
    for text in ("arms", "1 → 2", "Pause", "Next stage", "Back to 1", "waits for 1 machine of the stage".capitalize()):
        assert text in listed.text
    for action, label in (("pause", "paused"), ("resume", "active"), ("stop", "stopped"), ("back", "taken back")):
        assert (await post(person, path, action=action)).status == 303
        assert label in (await person.get(path)).text
    refused = await post(person, path, action="pause")
    assert refused.status in (400, 409, 412)
    assert "The rollout is reverted" in refused.text
    history = (await person.get("/rollouts")).text
    assert "No rollout is open" in history
    assert re.search(r'data-label="Ended by">\s*owner', history)


async def test_failures_are_allowed_as_a_share_of_the_selected_machines(cloud: MemoryCloud) -> None:
    person, subject, new = await prepared(cloud)
    values = form(cloud, subject, new, stop_after="75 %")
    assert "It stops when more than 3 machines fail" in (await post(person, "/rollouts/new", **values)).text
    started = await post(person, "/rollouts/new", **values, start="yes", expected="4")
    (listed,) = await call(cloud, "list_staged_rollouts", organization_id=cloud.first.organization)
    assert started.headers["location"].endswith(listed["id"])
    assert listed["plan"]["stop_after"] == 3


async def test_the_page_of_a_rollout_filters_its_machines(cloud: MemoryCloud) -> None:
    person, subject, new = await prepared(cloud)
    owner = cloud.first.organization
    rollout = await call(cloud, "start_staged_rollout", organization_id=owner, plan=plan(subject, new, 25, 100))
    await proceed(cloud)
    path = f"/rollouts/{owner}/{rollout}"
    assert (await person.get(path)).text.count("/machines/") == 5  # four machines, and one link to a log
    waiting = (await person.get(f"{path}?state=waiting")).text
    assert waiting.count('<td class="name">') == 1
    assert "/logs?to=2026-" in waiting
    assert (await person.get(f"{path}?page=nonsense")).status == 400


async def test_a_form_with_a_mistake_says_which_and_keeps_its_values(cloud: MemoryCloud) -> None:
    person, subject, new = await prepared(cloud)
    for change, text in (
        ({"stages": "25, some"}, "is not a stage"),
        ({"stages": "0"}, "0 %"),
        ({"stages": ""}, "no stage"),
        ({"stages": "50, 25"}, "does not add machines"),
        ({"soak": "soon"}, "not a whole number"),
        ({"stop_after": "-1"}, "neither a number such as 2, nor a share such as 5%"),
        ({"stop_after": "101 %"}, "neither a number"),
        ({"revision": "9"}, "9"),
        ({"what": "nothing"}, ""),
    ):
        reply = await post(person, "/rollouts/new", **form(cloud, subject, new, tags="some-tag") | change)
        assert reply.status in (400, 403, 404), change
        assert text in reply.text, change
    assert (
        'value="some-tag"' in (await post(person, "/rollouts/new", **form(cloud, subject, "9", tags="some-tag"))).text
    )


async def test_a_fragment_is_saved_for_a_rollout_from_its_review(cloud: MemoryCloud) -> None:
    person, subject, _ = await prepared(cloud)
    page = (await person.get(f"/fragments/{subject}")).text
    assert "Given to machines" in page
    assert "Roll out" in page
    saved = await post(person, f"/fragments/{subject}", action="hold", document=document(3), base="2")
    assert saved.status == 303
    assert saved.headers["location"].startswith("/rollouts/new?")
    assert 'value="3"' in (await person.get(saved.headers["location"])).text


async def test_a_save_for_all_while_a_rollout_is_open_says_what_to_do(cloud: MemoryCloud) -> None:
    person, subject, new = await prepared(cloud)
    chosen = plan(subject, new, 25, 100)
    await call(cloud, "start_staged_rollout", organization_id=cloud.first.organization, plan=chosen)
    reply = await post(person, f"/fragments/{subject}", action="save", document=document(3), base="2")
    assert reply.status == 400
    assert "finish the rollout or go back" in reply.text


async def test_operators_see_rollouts_and_have_no_buttons(cloud: MemoryCloud) -> None:
    _, subject, new = await prepared(cloud)
    owner = cloud.first.organization
    rollout = await call(cloud, "start_staged_rollout", organization_id=owner, plan=plan(subject, new, 25, 100))
    operator = await signed_in(cloud, await key_at(cloud, "organization", owner))
    page = await operator.get("/rollouts")
    assert "arms" in page.text
    assert "Pause" not in page.text
    assert (await post(operator, f"/rollouts/{owner}/{rollout}", action="back")).status == 403
    assert (await post(operator, "/rollouts/new", **form(cloud, subject, new, start="yes", expected="4"))).status == 403


async def test_the_table_has_the_versions_of_machines(cloud: MemoryCloud) -> None:
    person, subject, _ = await prepared(cloud, 2)
    page = await person.get("/rollouts/versions")
    assert f'<a href="/fragments/{subject}">arms</a>' in page.text
    assert page.text.count('data-label="arms">1<') == 2
    assert "1 machine of 2" in (await person.get("/rollouts/versions?q=m001")).text

"""The keys page: secrets shown once, revocation at once, and permissions."""

from __future__ import annotations

import re

import pytest

from cloud.domain.machines.machines import create_machine
from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from tests.unit.cloud.pages import browser, post, signed_in
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import Browser


@pytest.fixture
async def person(cloud: MemoryCloud) -> Browser:
    return await signed_in(cloud)


def shown(html: str) -> tuple[str, str]:
    """Return the id and the key that the page of a new key shows."""
    result = re.findall(r'<pre[^>]* aria-label="Key(?: id)?">([^<]+)</pre>', html)
    assert len(result) == 2, html
    return result[0], result[1]


async def test_a_new_key_is_shown_once_and_has_its_role(cloud: MemoryCloud, machine: str, person: Browser) -> None:
    reply = await post(person, "/keys", name="guard", role="operator", place=f"robot/{machine}")
    assert reply.status == 200
    created = shown(reply.text)
    assert "operator of machine rover" in reply.text
    assert re.search(rf"machine cloud login http://\S+ --key-id {created[0]}</pre>", reply.text)
    page = (await person.get("/keys")).text
    assert "guard" in page
    assert created[0] in page
    assert created[1] not in page
    guard = await signed_in(cloud, created)
    assert (await guard.get(f"/machines/{machine}")).status == 200
    assert (await guard.get("/keys")).status == 403


async def test_the_audit_log_shows_the_name_and_the_role_of_a_new_key_but_not_the_key(
    machine: str, person: Browser
) -> None:
    created = shown((await post(person, "/keys", name="guard", role="operator", place=f"robot/{machine}")).text)
    page = (await person.get("/audit")).text
    assert f'<a href="/keys#key-{created[0]}" title="{created[0]}">key guard</a>' in page
    assert "operator of machine rover" in page
    assert created[1] not in page
    assert "robot_operator" not in page


async def test_the_audit_log_names_no_place_of_others(cloud: MemoryCloud, machine: str, person: Browser) -> None:
    for name, place in (("everywhere", f"organization/{cloud.first.organization}"), ("here", f"robot/{machine}")):
        assert (await post(person, "/keys", name=name, role="operator", place=place)).status == 200
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    moved = "UPDATE locations SET organization_id = ? WHERE id = ?"
    await cloud.cloud.store.write(lambda sql: sql.run(moved, other.organization, cloud.first.location))
    page = (await person.get("/audit")).text
    assert "operator of organization Test" in page
    assert f"operator of machine {machine[:8]}…" in page
    assert "machine rover" not in page


async def test_a_key_is_renamed_rotated_and_deleted(cloud: MemoryCloud, machine: str, person: Browser) -> None:
    key = await key_at(cloud, "robot", machine)
    assert (await post(person, f"/keys/{key[0]}/rename", name="night watch")).status == 303
    assert "night watch" in (await person.get("/keys")).text
    guard = await signed_in(cloud, key)
    new = shown((await post(person, f"/keys/{key[0]}/rotate")).text)
    assert new[0] == key[0]
    assert new[1] != key[1]
    assert (await guard.get("/")).status == 303  # the token is revoked
    assert (await post(browser(cloud), "/login", id=key[0], key=key[1], next="/")).status == 401
    again = await signed_in(cloud, new)
    assert (await post(person, f"/keys/{key[0]}/delete")).status == 303
    assert (await again.get("/")).status == 303
    assert "night watch" not in (await person.get("/keys")).text


async def test_roles_are_added_and_removed(cloud: MemoryCloud, machine: str, person: Browser) -> None:
    key = await key_at(cloud, "robot", machine)
    place = f"location/{cloud.first.location}"
    assert (await post(person, f"/keys/{key[0]}/add-role", role="owner", place=place)).status == 303
    page = (await person.get("/keys")).text
    assert "location Test" in page
    assert "machine rover (Test)" in page
    assert (await post(person, f"/keys/{key[0]}/remove-role", role="operator", place=f"robot/{machine}")).status == 303
    left = await cloud.app("list_keys", org_id=cloud.first.organization)
    roles = next(item["authorizations"] for item in left if item["api_key"]["id"] == key[0])
    assert [role["authorization_id"] for role in roles] == ["location_owner"]


@pytest.mark.parametrize(
    ("action", "form", "code", "words"),
    [
        ("delete", {}, 409, "only key with the role of an owner"),
        ("rename", {"name": ""}, 400, "cannot be called"),
        ("add-role", {"role": "owner", "place": ""}, 400, "No place was chosen"),
        ("add-role", {"role": "king", "place": "location/x"}, 400, "is not a valid role"),
        ("add-role", {"role": "owner", "place": "moon/x"}, 400, "There is no place called"),
        ("explode", {}, 404, "no action"),
    ],
)
async def test_refusals_are_shown_next_to_the_key(
    cloud: MemoryCloud, person: Browser, action: str, form: dict[str, str], code: int, words: str
) -> None:
    reply = await post(person, f"/keys/{cloud.first.id}/{action}", **form)
    assert reply.status == code
    alert = re.search(r'role="alert"><p>([^<]+)', reply.text)
    assert alert is not None
    assert words in alert[1]
    assert (await person.get("/keys")).status == 200


async def test_with_many_machines_a_resource_is_typed_with_completion(cloud: MemoryCloud, person: Browser) -> None:
    def many(sql: Sql) -> list[str]:
        return [create_machine(sql, cloud.first.location, f"m{at:03}", cloud.cloud.clock()) for at in range(120)]

    created = await cloud.cloud.store.write(many)
    page = (await person.get("/keys")).text
    assert page.count("machine m007 (") == 1  # all fields share one list
    assert page.count('list="places"') == 3
    offered = re.search(r'<option value="(machine m007 [^"]+)">', page)
    assert offered is not None
    form = {"name": "x", "role": "operator"}
    made_key, _ = shown((await post(person, "/keys", **form, place=offered[1])).text)
    listed = await cloud.app("list_keys", org_id=cloud.first.organization)
    (grants,) = [item["authorizations"] for item in listed if item["api_key"]["id"] == made_key]
    assert [(grant["resource_type"], grant["resource_id"]) for grant in grants] == [("robot", created[7])]
    refused = await post(person, "/keys", **form, place="machine m999")
    assert (refused.status, "no place called" in refused.text) == (400, True)
    await cloud.app("update_robot", id=created[8], name="m007", location=await another(cloud))
    assert (await post(person, "/keys", **form, place=offered[1])).status == 200  # another m007 is elsewhere


async def another(cloud: MemoryCloud) -> str:
    location = await cloud.app("create_location", organization_id=cloud.first.organization, name="elsewhere")
    return str(location["id"])


async def test_a_key_of_another_organization_is_not_found(cloud: MemoryCloud, person: Browser) -> None:
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    for action in ("rename", "rotate", "delete"):
        theirs = await post(person, f"/keys/{other.id}/{action}", name="mine")
        assert theirs.status == 404
        assert other.id not in (await person.get("/keys")).text
    place = f"location/{other.location}"
    assert (await post(person, "/keys", name="x", role="owner", place=place)).status == 404
    assert (await post(person, f"/keys/{cloud.first.id}/add-role", role="owner", place=place)).status == 404


async def test_the_owner_of_a_location_creates_keys_for_it_but_sees_none(cloud: MemoryCloud, machine: str) -> None:
    person = await signed_in(cloud, await key_at(cloud, "location", cloud.first.location, "owner"))
    page = await person.get("/keys")
    assert page.status == 403
    assert "Only owners of the whole organization" in page.text
    assert f'<option value="location/{cloud.first.location}">' in page.text
    assert "everything in" not in page.text  # the choice would be refused
    reply = await post(person, "/keys", name="x", role="operator", place=f"location/{cloud.first.location}")
    assert shown(reply.text)
    everything = f"organization/{cloud.first.organization}"
    assert (await post(person, "/keys", name="x", role="owner", place=everything)).status == 404


async def test_an_operator_cannot_create_keys(cloud: MemoryCloud, machine: str) -> None:
    person = await signed_in(cloud, await key_at(cloud, "organization", cloud.first.organization, "operator"))
    page = await person.get("/keys")
    assert page.status == 403
    assert "New key" not in page.text

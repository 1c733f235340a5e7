"""Organizations, locations, machines, parts and keys: created, moved, renamed and refused."""

from __future__ import annotations

from typing import Any

import pytest

from cloud.server.memory import ROBOT, MemoryCloud
from cloud.values.names import checked_name, checked_namespace, slug
from schema.errors import ErrorKind, MachineError


async def refused(call: Any) -> ErrorKind:
    with pytest.raises(MachineError) as caught:
        await call
    return caught.value.kind


async def test_a_location_may_contain_others_but_not_itself(cloud: MemoryCloud) -> None:
    owner, top = cloud.first.organization, cloud.first.location
    inner = await cloud.app("create_location", organization_id=owner, name="Hall", parent_location_id=top)
    assert inner["parent_location_id"] == top
    assert inner["primary_org_identity"]["name"] == "Test"
    move = cloud.app("update_location", location_id=top, parent_location_id=inner["id"])
    assert await refused(move) is ErrorKind.PRECONDITION
    assert await refused(cloud.app("delete_location", location_id=top)) is ErrorKind.PRECONDITION
    moved = await cloud.app("update_location", location_id=inner["id"], name="Yard", parent_location_id="")
    assert (moved["name"], moved["parent_location_id"]) == ("Yard", "")
    await cloud.app("delete_location", location_id=inner["id"])
    assert [item["name"] for item in await cloud.app("list_locations", organization_id=owner)] == ["Test"]


async def test_a_role_at_a_location_applies_to_everything_in_it(cloud: MemoryCloud) -> None:
    owner, top = cloud.first.organization, cloud.first.location
    inner = await cloud.app("create_location", organization_id=owner, name="Hall", parent_location_id=top)
    robot = await cloud.app("new_robot", name="deep", location=inner["id"])
    grant = {"authorization_id": "location_operator", "resource_type": "location", "resource_id": top}
    key = await cloud.app("create_key", authorizations=[grant], name="guard")
    answer = await cloud.client(key["id"]).call("viam.app.v1.AppService", "", "get_robot", id=robot)
    assert answer["name"] == "deep"
    await cloud.app("update_location", location_id=inner["id"], parent_location_id="")
    call = cloud.client(key["id"]).call("viam.app.v1.AppService", "", "get_robot", id=robot)
    assert await refused(call) is ErrorKind.NOT_FOUND


async def test_machine_names_are_unique_in_a_location(cloud: MemoryCloud, machine: str) -> None:
    place, owner = cloud.first.location, cloud.first.organization
    assert await refused(cloud.app("new_robot", name="rover", location=place)) is ErrorKind.EXISTS
    assert await refused(cloud.app("new_robot", name="  ", location=place)) is ErrorKind.INVALID
    other = await cloud.app("create_location", organization_id=owner, name="Hall")
    twin = await cloud.app("new_robot", name="rover", location=other["id"])
    assert await refused(cloud.app("update_robot", id=twin, name="", location=place)) is ErrorKind.EXISTS
    renamed = await cloud.app("update_robot", id=twin, name="tractor", location=place)
    assert (renamed["name"], renamed["location"]) == ("tractor", place)
    names = [item["name"] for item in await cloud.app("list_robots_for_org", org_id=owner)]
    assert names == ["rover", "tractor"]


async def test_a_machine_has_exactly_one_main_part(cloud: MemoryCloud, machine: str, part: str) -> None:
    second = await cloud.app("new_robot_part", robot_id=machine, part_name="arm")
    assert await refused(cloud.app("new_robot_part", robot_id=machine, part_name="arm")) is ErrorKind.EXISTS
    assert await refused(cloud.app("delete_robot_part", part_id=part)) is ErrorKind.PRECONDITION
    await cloud.app("mark_part_as_main", part_id=second)
    parts = await cloud.app("get_robot_parts", robot_id=machine)
    assert [(item["id"], item["main_part"]) for item in parts] == [(second, True), (part, False)]
    await cloud.app("delete_robot_part", part_id=part)
    assert await refused(cloud.app("get_robot_part", id=part)) is ErrorKind.NOT_FOUND


async def test_deleting_a_machine_deletes_everything_of_it(cloud: MemoryCloud, machine: str, part: str) -> None:
    grant = {"authorization_id": "robot_owner", "resource_type": "robot", "resource_id": machine}
    await cloud.app("create_key", authorizations=[grant], name="of the machine")
    assert len(await cloud.app("get_robot_api_keys", robot_id=machine)) == 1
    await cloud.app("delete_robot", id=machine)
    assert await cloud.app("list_robots", location_id=cloud.first.location) == []
    keys = await cloud.app("list_keys", org_id=cloud.first.organization)
    assert {key["api_key"]["name"]: len(key["authorizations"] or []) for key in keys} == {
        "of the machine": 0,
        "owner": 1,
    }


async def test_secrets_are_added_and_removed_except_the_last(cloud: MemoryCloud, part: str) -> None:
    first = (await cloud.app("get_robot_part", id=part))["part"]["secrets"]
    both = (await cloud.app("create_robot_part_secret", part_id=part))["secrets"]
    assert len(both) == 2
    await cloud.app("delete_robot_part_secret", part_id=part, secret_id=first[0]["id"])
    left = (await cloud.app("get_robot_part", id=part))["part"]
    assert [secret["id"] for secret in left["secrets"]] == [item["id"] for item in both if item["id"] != first[0]["id"]]
    assert left["secret"] == left["secrets"][0]["secret"] != first[0]["secret"]
    last = cloud.app("delete_robot_part_secret", part_id=part, secret_id=left["secrets"][0]["id"])
    assert await refused(last) is ErrorKind.PRECONDITION


async def test_keys_are_shown_only_once(cloud: MemoryCloud) -> None:
    grant = {
        "authorization_type": "role",
        "authorization_id": "organization_operator",
        "resource_type": "organization",
        "resource_id": cloud.first.organization,
    }
    key = await cloud.app("create_key", authorizations=[grant], name="guard")
    assert len(key["key"]) > 40
    listed = {item["api_key"]["name"]: item for item in await cloud.app("list_keys", org_id=cloud.first.organization)}
    assert listed["guard"]["api_key"]["key"] == ""
    assert listed["guard"]["authorizations"][0]["authorization_id"] == "organization_operator"
    rotated = await cloud.app("rotate_key", id=key["id"])
    assert rotated["id"] == key["id"]
    assert rotated["key"] != key["key"]
    copy = await cloud.app("create_key_from_existing_key_authorizations", id=key["id"])
    assert copy["id"] != key["id"]
    assert (await cloud.app("rename_key", id=key["id"], name="watch")) == {"id": key["id"], "name": "watch"}
    await cloud.app("delete_key", id=key["id"])
    names = [element["api_key"]["name"] for element in await cloud.app("list_keys", org_id=cloud.first.organization)]
    assert sorted(names) == ["guard (copy)", "owner"]


async def test_the_last_owner_cannot_be_removed(cloud: MemoryCloud) -> None:
    assert await refused(cloud.app("delete_key", id=cloud.first.id)) is ErrorKind.PRECONDITION


@pytest.mark.parametrize(
    "grant",
    [
        {"authorization_id": "organization_king", "resource_type": "organization"},
        {"authorization_id": "planet_owner", "resource_type": "planet"},
        {"authorization_id": "location_owner", "resource_type": "organization"},
        {"authorization_id": "", "resource_type": "organization"},
    ],
)
async def test_an_unknown_role_is_refused(cloud: MemoryCloud, grant: dict[str, str]) -> None:
    authorization = {**grant, "resource_id": cloud.first.organization}
    assert await refused(cloud.app("create_key", authorizations=[authorization], name="x")) is ErrorKind.INVALID
    assert await refused(cloud.app("create_key", authorizations=[], name="x")) is ErrorKind.INVALID


async def test_roles_are_added_and_removed(cloud: MemoryCloud, machine: str) -> None:
    owner = cloud.first.organization
    grant = {"authorization_id": "robot_operator", "resource_type": "robot", "resource_id": machine}
    key = await cloud.app("create_key", authorizations=[grant], name="guard")
    mine = {**grant, "identity_id": key["id"]}
    more = {**mine, "authorization_id": "location_owner", "resource_type": "location"}
    more["resource_id"] = cloud.first.location
    await cloud.app("add_role", authorization=more)
    higher = {**mine, "authorization_id": "robot_owner"}
    await cloud.app("change_role", old_authorization=mine, new_authorization=higher)
    roles = await cloud.app("list_authorizations", organization_id=owner)
    assert {role["authorization_id"] for role in roles if role["identity_id"] == key["id"]} == {
        "robot_owner",
        "location_owner",
    }
    assert len(await cloud.app("list_authorizations", organization_id=owner, resource_ids=[machine])) == 1
    await cloud.app("remove_role", authorization=more)
    last = cloud.app("remove_role", authorization=higher)
    assert await refused(last) is ErrorKind.PRECONDITION


async def test_metadata_is_stored_unchanged(cloud: MemoryCloud, machine: str, part: str) -> None:
    for kind, field, subject in (
        ("organization", "organization_id", cloud.first.organization),
        ("location", "location_id", cloud.first.location),
        ("robot", "id", machine),
        ("robot_part", "id", part),
    ):
        assert await cloud.app(f"get_{kind}_metadata", **{field: subject}) == {}
        await cloud.app(f"update_{kind}_metadata", **{field: subject}, data={"kind": kind, "n": [1, None]})
        assert await cloud.app(f"get_{kind}_metadata", **{field: subject}) == {"kind": kind, "n": [1, None]}


async def test_an_organization_has_one_namespace(cloud: MemoryCloud) -> None:
    owner = cloud.first.organization
    assert await cloud.app("get_organization_namespace_availability", public_namespace="acme", organization_id=owner)
    named = await cloud.app("update_organization", organization_id=owner, name="Acme", public_namespace="acme")
    assert (named["name"], named["public_namespace"]) == ("Acme", "acme")
    change = cloud.app("update_organization", organization_id=owner, public_namespace="other")
    assert await refused(change) is ErrorKind.PRECONDITION
    free = await cloud.app("get_organization_namespace_availability", public_namespace="acme", organization_id=owner)
    assert free is False
    assert await refused(cloud.app("delete_organization", organization_id=owner)) is ErrorKind.PRECONDITION
    assert await refused(cloud.app("create_organization", name="Two")) is ErrorKind.UNSUPPORTED


async def test_the_fleet_at_a_glance(cloud: MemoryCloud, machine: str) -> None:
    await cloud.app("new_robot", name="tractor", location=cloud.first.location)
    answer = await cloud.app("list_machine_summaries", organization_id=cloud.first.organization)
    assert [item["machine_name"] for item in answer[0]["machine_summaries"]] == ["rover", "tractor"]
    assert answer[0]["machine_summaries"][0]["part_summaries"][0]["online_state"] == "AWAITING_SETUP"
    values = {"version": "v1.20.3", "os": "linux", "host": "pi"}
    part = (await cloud.app("get_robot_parts", robot_id=machine))[0]["id"]
    await cloud.client(part, "robot-secret").call(ROBOT, "", "config", id=part, agent_info=values)
    fragment = await cloud.app("create_fragment", organization_id=cloud.first.organization, name="drive")
    await cloud.app("update_robot_part", id=part, robot_config={"fragments": [{"id": fragment["id"]}]})
    answer = await cloud.app("list_machine_summaries", organization_id=cloud.first.organization)
    (summary,) = answer[0]["machine_summaries"][0]["part_summaries"]
    assert summary["viam_server_version"] == {"minor": "1.20.3"}
    assert "viam_agent_version" not in summary
    assert summary["fragments"] == [{"id": fragment["id"], "name": "drive"}]
    short = await cloud.app("list_machine_summaries", organization_id=cloud.first.organization, limit=1)
    assert len(short[0]["machine_summaries"]) == 1


def test_names_that_look_the_same_are_the_same() -> None:
    """An é is one character (NFC), or an e with an accent (NFD), as some keyboards and file systems write it."""
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert checked_name(decomposed, "a machine") == checked_name(composed, "a machine") == composed


@pytest.mark.parametrize("name", ["", " ", "x" * 201, "a\nb", "\x00"])
def test_unreadable_names_are_refused(name: str) -> None:
    with pytest.raises(MachineError, match="cannot be called"):
        checked_name(name, "a machine")


@pytest.mark.parametrize("namespace", ["", "ab", "Acme", "-acme", "acme-", "a" * 41, "a_b"])
def test_namespaces_are_labels(namespace: str) -> None:
    with pytest.raises(MachineError, match="namespace"):
        checked_namespace(namespace)


@pytest.mark.parametrize(("name", "label"), [("Rover 1", "rover-1"), ("--", "machine"), ("Käthe", "k-the"), ("a", "a")])
def test_names_become_labels_of_host_names(name: str, label: str) -> None:
    assert slug(name) == label

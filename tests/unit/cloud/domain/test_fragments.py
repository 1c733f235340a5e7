"""Fragments of an organization: saved, tagged, used by machines, and visible to other organizations only if public."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from cloud.domain.organizations.first import create_owner
from cloud.server.memory import APP, ROBOT, MemoryCloud
from cloud.services.machines.facts import facts
from schema.errors import ErrorKind, MachineError

MOTOR = {"name": "wheel", "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": 10}}


async def create(cloud: MemoryCloud, name: str = "drive", config: Any = None, **more: Any) -> dict[str, Any]:
    config = {"components": [MOTOR]} if config is None else config
    answer: dict[str, Any] = await cloud.app(
        "create_fragment", name=name, config=config, organization_id=cloud.first.organization, **more
    )
    return answer


async def use(cloud: MemoryCloud, part: str, *entries: Any, **document: Any) -> None:
    text = json.dumps({"fragments": list(entries), **document})
    await cloud.app("update_robot_part", id=part, name="", robot_config_json=text)


async def running(cloud: MemoryCloud, part: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the revision and the components of the configuration that the machine receives."""
    result = await cloud.cloud.store.read(lambda sql: facts(sql, part))
    return result["revision"], result["document"].get("components", [])


async def refused(call: Any) -> MachineError:
    with pytest.raises(MachineError) as caught:
        await call
    return caught.value


async def test_a_machine_gets_its_fragments_and_every_change_of_them(cloud: MemoryCloud, part: str) -> None:
    created = await create(cloud)
    await use(cloud, part, created["id"])
    before, components = await running(cloud, part)
    assert components == [MOTOR]
    config = (await cloud.client(part, "robot-secret").call(ROBOT, "", "config", id=part))["components"]
    assert [item["name"] for item in config] == ["wheel"]
    faster = {"components": [{**MOTOR, "attributes": {"max_rpm": 20}}]}
    with cloud.cloud.events.listening("part", part) as news:
        await cloud.app("update_fragment", id=created["id"], name="drive", config=faster)
        with trio.fail_after(30):
            await news.next()
    after, components = await running(cloud, part)
    assert (components[0]["attributes"]["max_rpm"], after != before) == (20, True)
    shown = await cloud.app("get_robot_part", id=part)
    assert json.loads(shown["config_json"]) == {"fragments": [created["id"]]}


async def test_revisions_tags_and_pins(cloud: MemoryCloud, part: str) -> None:
    created = (await create(cloud))["id"]
    await cloud.app("set_fragment_tag", fragment_id=created, tag="stable", revision="1")
    await use(cloud, part, {"id": created, "version": "stable"})
    await cloud.app("update_fragment", id=created, name="drive", config={"components": []})
    assert (await running(cloud, part))[1] == [MOTOR]
    answer = await cloud.app("get_fragment", id=created, version="stable")
    assert (answer["fragment"]["revision"], answer["fragment"]["fragment"]) == ("1", {"components": [MOTOR]})
    assert [revision["revision"] for revision in answer["revisions"]] == ["2", "1"]
    with cloud.cloud.events.listening("part", part) as news:
        tags = await cloud.app("set_fragment_tag", fragment_id=created, tag="stable", revision="2")
        with trio.fail_after(30):
            await news.next()
    assert tags == [{"tag": "stable", "revision": "2"}]
    assert (await running(cloud, part))[1] == []
    assert (
        await refused(cloud.app("delete_fragment_tag", fragment_id=created, tag="stable"))
    ).kind is ErrorKind.PRECONDITION
    await use(cloud, part, {"id": created, "version": "1"})
    assert await cloud.app("delete_fragment_tag", fragment_id=created, tag="stable") == []
    history = await cloud.app("get_fragment_history", id=created, page_limit=1)
    assert (history["history"][0]["old"]["fragment"], history["next_page_token"]) == ({"components": [MOTOR]}, "2")
    rest = await cloud.app("get_fragment_history", id=created, page_token="2")
    assert ([entry["revision"] for entry in rest["history"]], rest["next_page_token"]) == (["1"], "")


@pytest.mark.parametrize("tag", ["1", "v2", "A", "a b", "x" * 61, ""])
async def test_invalid_tags_are_refused(cloud: MemoryCloud, tag: str) -> None:
    created = (await create(cloud))["id"]
    error = await refused(cloud.app("set_fragment_tag", fragment_id=created, tag=tag, revision="1"))
    assert error.kind is ErrorKind.INVALID


async def test_a_document_that_cannot_be_merged_is_not_saved(cloud: MemoryCloud, part: str) -> None:
    error = await refused(use(cloud, part, "no-such-fragment"))
    assert (error.kind, "fragments.0" in str(error)) == (ErrorKind.INVALID, True)
    assert json.loads((await cloud.app("get_robot_part", id=part))["config_json"]) == {}
    first, second = (await create(cloud))["id"], (await create(cloud, "second"))["id"]
    await cloud.app("update_fragment", id=first, name="drive", config={"fragments": [second]})
    error = await refused(cloud.app("update_fragment", id=second, name="second", config={"fragments": [first]}))
    assert (error.kind, "contains itself" in str(error)) == (ErrorKind.INVALID, True)


async def test_a_used_fragment_cannot_be_deleted(cloud: MemoryCloud, part: str) -> None:
    inner = (await create(cloud))["id"]
    outer = (await create(cloud, "outer", {"fragments": [inner]}))["id"]
    await use(cloud, part, outer)
    for item in (inner, outer):
        assert (await refused(cloud.app("delete_fragment", id=item))).kind is ErrorKind.PRECONDITION
    usage = await cloud.app("get_fragment", id=inner, current_organization_id=cloud.first.organization)
    assert usage["fragment_usage"]["machines_in_current_org"] == 1
    assert (await cloud.app("get_fragment_usage", fragment_id=inner))[0]["version"] == "1"
    listed = await cloud.app("list_machine_summaries", organization_id=cloud.first.organization, fragment_ids=[inner])
    assert len(listed[0]["machine_summaries"]) == 1
    await cloud.app("update_robot_part", id=part, name="", robot_config_json="{}")
    for item in (outer, inner):
        await cloud.app("delete_fragment", id=item)
    assert (await refused(cloud.app("get_fragment", id=inner))).kind is ErrorKind.NOT_FOUND


async def test_others_see_and_use_only_public_fragments(cloud: MemoryCloud) -> None:
    created = (await create(cloud))["id"]
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    theirs = cloud.client(other.id)
    machine = await theirs.call(APP, "", "new_robot", name="spy", location=other.location)
    part = (await theirs.call(APP, "", "get_robot_parts", robot_id=machine))[0]["id"]
    document = json.dumps({"fragments": [created]})
    save = {"id": part, "name": "", "robot_config_json": document}
    assert (await refused(theirs.call(APP, "", "get_fragment", id=created))).kind is ErrorKind.NOT_FOUND
    assert (await refused(theirs.call(APP, "", "update_robot_part", **save))).kind is ErrorKind.INVALID
    await cloud.app("update_fragment", id=created, name="drive", config=None, public=True)
    await theirs.call(APP, "", "update_robot_part", **save)
    assert (await theirs.call(APP, "", "get_fragment", id=created))["fragment"]["only_used_by_owner"] is False
    assert (await refused(theirs.call(APP, "", "update_fragment", id=created, name="mine"))).kind is ErrorKind.NOT_FOUND
    shown = await theirs.call(APP, "", "list_fragments", organization_id=other.organization, show_public=True)
    assert [fragment["id"] for fragment in shown["fragments"]] == [created]
    error = await refused(cloud.app("update_fragment", id=created, name="drive", public=False))
    assert error.kind is ErrorKind.PRECONDITION


async def test_a_public_fragment_cannot_contain_secrets(cloud: MemoryCloud) -> None:
    hook = {"type": "webhook", "value": "http://x", "auth": {"basic": {"username": "u", "password": "p"}}}
    config = {"triggers": [{"name": "t", "notifications": [hook]}]}
    created = (await create(cloud, config=config))["id"]
    error = await refused(cloud.app("update_fragment", id=created, name="drive", public=True))
    assert (error.kind, '"p"' in str(error)) == (ErrorKind.INVALID, False)


async def test_a_machine_gets_the_content_of_every_fragment(cloud: MemoryCloud, machine: str, part: str) -> None:
    created = (await create(cloud, config={"components": [{**MOTOR, "name": {"$variable": {"name": "n"}}}]}))["id"]
    await use(cloud, part, {"id": created, "variables": {"n": "left"}})
    answer = await cloud.app("list_machine_fragments", machine_id=machine, additional_fragment_ids=["gone"])
    assert answer["resolved_fragments"][0]["resolved_config"]["components"][0]["name"] == "left"
    assert answer["resolved_fragments"][1]["error"]["error_type"] == "NO_ACCESS"


async def test_a_refused_deletion_names_no_part_of_other_organizations(cloud: MemoryCloud, part: str) -> None:
    fragment = await create(cloud, config={})
    await cloud.app("update_fragment", id=fragment["id"], public=True)
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    client = cloud.client(other.id)
    theirs = await client.call(APP, "", "new_robot", name="theirs", location=other.location)
    foreign = (await client.call(APP, "", "get_robot_parts", robot_id=theirs))[0]["id"]
    text = json.dumps({"fragments": [fragment["id"]]})
    await client.call(APP, "", "update_robot_part", id=foreign, robot_config_json=text)
    error = await refused(cloud.app("delete_fragment", id=fragment["id"]))
    assert "used by 1 parts or fragments:" in str(error)
    await use(cloud, part, fragment["id"])
    error = await refused(cloud.app("delete_fragment", id=fragment["id"]))
    assert f"used by 2 parts or fragments (part {part})" in str(error)
    assert foreign not in str(error)

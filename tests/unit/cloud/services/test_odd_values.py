"""Values that no client should send: refused with a reason, never an internal error."""

from __future__ import annotations

import json
from contextlib import aclosing, suppress
from random import Random
from typing import Any

import pytest

from cloud.server.memory import APP, ROBOT, MemoryCloud
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import BOTH
from tests.unit.cloud.pages import signed_in

DIGITS = "9" * 5000
LONG = Random(1).randbytes(30_000).hex()  # too long for an index of PostgreSQL and a pattern of SQLite


async def invalid(call: Any) -> str:
    with pytest.raises(MachineError) as caught:
        await call
    assert caught.value.kind is ErrorKind.INVALID, caught.value
    return str(caught.value)


@pytest.mark.parametrize("token", ["--5.3", "5.", f"1.{DIGITS}", f"{DIGITS}.1", f"1.{'9' * 20}", "²", "1.2.3", "1.-2"])
async def test_forged_page_tokens_of_logs_are_refused(cloud: MemoryCloud, part: str, token: str) -> None:
    await invalid(cloud.app("get_robot_part_logs", id=part, page_token=token))


@pytest.mark.parametrize("token", ["-1", "9" * 20, DIGITS, "²"])
async def test_forged_page_tokens_of_history_are_refused(cloud: MemoryCloud, part: str, token: str) -> None:
    await invalid(cloud.app("get_robot_part_history", id=part, page_token=token))
    fragment = await cloud.app("create_fragment", organization_id=cloud.first.organization, name="f")
    await invalid(cloud.app("get_fragment_history", id=fragment["id"], page_token=token))


@BOTH
@pytest.mark.parametrize(
    "asked", [{"filter": LONG}, {"source": LONG}, {"levels": [str(number) for number in range(70_000)]}]
)
async def test_a_search_in_logs_with_more_values_than_a_query_allows(
    cloud: MemoryCloud, part: str, asked: dict[str, Any]
) -> None:
    assert "more than 50 levels" in await invalid(cloud.app("get_robot_part_logs", id=part, **asked))


async def test_the_path_of_a_property_is_limited(cloud: MemoryCloud, part: str) -> None:
    await cloud.app("update_robot_part", id=part, robot_config_json='{"components": [{"name": "arm"}]}')
    for path in ("a." * 3000 + "a", f"components.{DIGITS}"):
        changes = [{"path": path, "value": 1}]
        (item,) = await cloud.app("set_config_property", robot_part_id=part, property_changes=changes)
        assert not item.get("success")
        assert item["error"]
    many = [{"path": "log_level", "value": "info"}] * 1001
    assert "at most 1000" in await invalid(cloud.app("set_config_property", robot_part_id=part, property_changes=many))


@pytest.mark.parametrize("network", [5, "x", ["a"], True, {"bind_address": ":9000"}])
async def test_a_malformed_section_is_kept_and_machines_are_answered(
    cloud: MemoryCloud, part: str, network: Any
) -> None:
    text = json.dumps({"network": network})
    assert (await cloud.app("update_robot_part", id=part, robot_config_json=text))["robot_config_json"]
    machine = cloud.client(part, "robot-secret")
    if isinstance(network, dict):
        assert (await machine.call(ROBOT, "", "config", id=part))["cloud"]["fqdn"]
    else:
        assert "network" in await invalid(machine.call(ROBOT, "", "config", id=part))


@BOTH
@pytest.mark.parametrize(
    "document",
    [
        {"triggers": 5},
        {"triggers": [5]},
        {"triggers": [{"notifications": 5}]},
        {"triggers": {"a": 1}},
        {"fragments": [{"id": LONG, "disabled": True}]},
    ],
)
async def test_a_malformed_public_fragment_is_handled(cloud: MemoryCloud, part: str, document: Any) -> None:
    owner = cloud.first.organization
    fragment = await cloud.app("create_fragment", organization_id=owner, name="f", config=document, visibility=2)
    assert fragment["public"]
    text = json.dumps({"fragments": [fragment["id"], *document.get("fragments", [])]})
    await cloud.app("update_robot_part", id=part, robot_config_json=text)


@BOTH
async def test_the_number_of_platform_tags_is_limited(cloud: MemoryCloud) -> None:
    owner = cloud.first.organization
    module = (await cloud.app("create_module", organization_id=owner, name="smooth"))["module_id"]

    async def pieces() -> Any:
        yield b"\x1f\x8b an archive"

    tags = [LONG[start : start + 60] for start in range(0, 6000, 60)]
    values = {"module_id": module, "version": "1.0.0", "platform": "any"}
    call = cloud.client().call
    async with aclosing(pieces()) as sent:
        refused = call(APP, "", "upload_module_file", **values, platform_tags=tags, pieces=sent)
        assert "at most 20" in await invalid(refused)
    async with aclosing(pieces()) as sent:
        await call(APP, "", "upload_module_file", **values, platform_tags=tags[:20], pieces=sent)


async def test_an_address_that_would_be_normalized_is_invalid(cloud: MemoryCloud) -> None:
    for email in ("=?utf-8?q?victim=40example.net=2C?=@example.com", "=?utf-8?b?*?=@example.com"):
        await invalid(cloud.app("create_organization_invite", organization_id=cloud.first.organization, email=email))


@pytest.mark.parametrize("section", ["components", "services", "fragments", "fragment_mods", "network", "triggers"])
@pytest.mark.parametrize("value", [5, [5], {"x": 5}])
async def test_a_saved_document_with_errors_is_shown_for_correction(
    cloud: MemoryCloud, machine: str, part: str, section: str, value: Any
) -> None:
    values: dict[str, Any] = {"organization_id": cloud.first.organization, "config": {section: value}, "visibility": 2}
    saved = [{section: value}]
    with suppress(MachineError):  # an invalid fragment is refused
        saved.append({"fragments": [(await cloud.app("create_fragment", name="f", **values))["id"]]})
    for item in saved:
        with suppress(MachineError):  # and so is an invalid configuration
            await cloud.app("update_robot_part", id=part, robot_config_json=json.dumps(item))
        reply = await (await signed_in(cloud)).get(f"/machines/{part}/config")
        assert reply.status == 200, reply.text
        await cloud.app("list_machine_fragments", machine_id=machine)


async def test_the_longest_names_fit_into_everything_derived_from_them(cloud: MemoryCloud) -> None:
    name = "n" * 200
    robot = await cloud.app("new_robot", name=name, location=cloud.first.location)
    (main,) = await cloud.app("get_robot_parts", robot_id=robot)
    assert main["name"] == "n" * 195 + "-main"
    grant = {"authorization_id": "robot_operator", "resource_type": "robot", "resource_id": robot}
    key = await cloud.app("create_key", authorizations=[grant], name=name)
    copy = await cloud.app("create_key_from_existing_key_authorizations", id=key["id"])
    keys = {
        item["api_key"]["id"]: item["api_key"]["name"] for item in await cloud.app("get_robot_api_keys", robot_id=robot)
    }
    assert keys == {key["id"]: name, copy["id"]: "n" * 193 + " (copy)"}


async def test_metadata_of_a_package_are_read_back(cloud: MemoryCloud) -> None:
    async def pieces() -> Any:
        yield b"an archive"

    deep: dict[str, Any] = {}
    for _ in range(32):
        deep = {"a": deep}
    values = {"organization_id": cloud.first.organization, "name": "p", "version": "1", "type": "ARCHIVE"}
    service = "viam.app.packages.v1.PackageService"
    for metadata, words in ((deep, "levels of objects and lists"), ({"a": float("nan")}, "not a JSON number")):
        async with aclosing(pieces()) as sent:
            call = cloud.client().call(service, "", "create_package", **values, metadata=metadata, pieces=sent)
            assert words in await invalid(call)
    assert await cloud.client().call(service, "", "list_packages", organization_id=cloud.first.organization) == []


async def test_the_number_of_merged_fragments_is_limited(cloud: MemoryCloud, machine: str) -> None:
    fragment = await cloud.app("create_fragment", organization_id=cloud.first.organization, name="f")
    ids, entries = [fragment["id"]] * 101, [{"fragment_id": fragment["id"]}] * 101
    for asked in ({"additional_fragment_ids": ids}, {"additional_fragments": entries}):
        text = await invalid(cloud.app("list_machine_fragments", machine_id=machine, **asked))
        assert "at most 100" in text
    assert "at most 100" in await invalid(cloud.app("list_nested_fragments", additional_fragments=entries))
    await cloud.app("list_nested_fragments", additional_fragments=entries[:100])

"""Limits on what a tenant may send and store: each entry point refuses more and names the limit."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cloud.domain.configurations import fragments
from cloud.domain.data import datasets
from cloud.domain.machines import machines
from cloud.domain.organizations import keys, tenants
from cloud.domain.registry import items
from cloud.server.memory import MemoryCloud
from cloud.values import limits
from cloud.values.limits import DOCUMENT, DOCUMENT_VALUES, LIMITS, METADATA, SECTION, Limit
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.pages import post, signed_in

ROOT = Path(__file__).resolve().parents[4]
LARGE = {"attributes": {"x": "x" * DOCUMENT.value}}


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    path = ROOT / "tools" / "gen_limits_reference.py"
    spec = importlib.util.spec_from_file_location("gen_limits_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(generator: ModuleType) -> None:
    assert generator.PAGE.read_text() == generator.page(), "run make generate"


def test_every_limit_is_listed_once() -> None:
    created = [item for item in vars(limits).values() if isinstance(item, Limit)]
    assert sorted(created, key=lambda first: first.name) == sorted(LIMITS, key=lambda left: left.name)
    assert len({limit.name for limit in LIMITS}) == len(LIMITS)


async def refused(limit: Limit, cloud: MemoryCloud, method: str, **arguments: Any) -> str:
    with pytest.raises(MachineError) as caught:
        await cloud.app(method, **arguments)
    assert caught.value.kind is limit.kind
    assert f"`{limit.name}`" in str(caught.value)
    assert limit.remedy in str(caught.value)
    return str(caught.value)


async def test_a_too_large_configuration_is_refused_and_not_stored(cloud: MemoryCloud, part: str) -> None:
    text = await refused(DOCUMENT, cloud, "update_robot_part", id=part, robot_config=LARGE)
    assert re.search(r"the configuration has 4,194,\d+ bytes", text)
    await refused(DOCUMENT, cloud, "update_robot_part", id=part, robot_config_json=json.dumps(LARGE))
    await refused(DOCUMENT, cloud, "update_robot_part", id=part, robot_config_json="[" * (DOCUMENT.value + 1))
    assert (await cloud.app("get_robot_part", id=part))["config_json"] == "{}"


async def test_a_configuration_of_the_maximum_size_is_stored(cloud: MemoryCloud, part: str) -> None:
    text = json.dumps({"x": "y" * (DOCUMENT.value - len('{"x":""}'))}, separators=(",", ":"))
    assert len(text) == DOCUMENT.value
    await cloud.app("update_robot_part", id=part, robot_config_json=text)
    assert (await cloud.app("get_robot_part", id=part))["config_json"] == text


async def test_many_small_values_are_refused(cloud: MemoryCloud, part: str) -> None:
    document = {"x": [1] * DOCUMENT_VALUES.value}
    await refused(DOCUMENT_VALUES, cloud, "update_robot_part", id=part, robot_config_json=json.dumps(document))


async def test_a_section_of_too_many_entries_is_refused(cloud: MemoryCloud, part: str) -> None:
    entries = [{"name": f"s{number}"} for number in range(SECTION.value + 1)]
    for section in ("components", "remotes", "fragments"):
        text = await refused(SECTION, cloud, "update_robot_part", id=part, robot_config={section: entries})
        assert section in text


async def test_a_too_large_fragment_is_refused(cloud: MemoryCloud) -> None:
    place = cloud.first.organization
    await refused(DOCUMENT, cloud, "create_fragment", name="f", organization_id=place, config=LARGE)
    fragment = (await cloud.app("create_fragment", name="f", organization_id=place, config={}))["id"]
    await refused(DOCUMENT, cloud, "update_fragment", id=fragment, config=LARGE)
    await refused(DOCUMENT, cloud, "update_fragment", id=fragment, fragment_config_json=json.dumps(LARGE))


async def test_fragments_that_are_too_large_together_are_refused(cloud: MemoryCloud, part: str) -> None:
    entry = {"name": "a", "attributes": {"x": "x" * (DOCUMENT.value * 2 // 3)}}
    fragment = await cloud.app(
        "create_fragment", name="f", organization_id=cloud.first.organization, config={"components": [entry]}
    )
    document = {"fragments": [fragment["id"]], "components": [{**entry, "name": "b"}]}
    text = await refused(DOCUMENT, cloud, "update_robot_part", id=part, robot_config=document)
    assert "with its fragments" in text


async def test_a_property_that_makes_a_configuration_too_large_is_refused(cloud: MemoryCloud, part: str) -> None:
    change = {"path": "attributes.x", "value": "x" * DOCUMENT.value}
    await refused(DOCUMENT, cloud, "set_config_property", robot_part_id=part, property_changes=[change])


@pytest.mark.parametrize("kind", ["organization", "location", "robot", "robot_part"])
async def test_metadata_that_is_too_large_is_refused(cloud: MemoryCloud, machine: str, part: str, kind: str) -> None:
    ids = {
        "organization": {"organization_id": cloud.first.organization},
        "location": {"location_id": cloud.first.location},
        "robot": {"id": machine},
        "robot_part": {"id": part},
    }
    data = {"x": "y" * METADATA.value}
    await refused(METADATA, cloud, f"update_{kind}_metadata", **ids[kind], data=data)
    await cloud.app(f"update_{kind}_metadata", **ids[kind], data={"x": "y" * (METADATA.value - 20)})


async def test_the_editor_refuses_a_text_that_is_too_large(cloud: MemoryCloud, part: str) -> None:
    page = await signed_in(cloud)
    for action in ("check", "review", "save"):
        reply = await post(page, f"/machines/{part}/config", action=action, base="1", document=json.dumps(LARGE))
        assert reply.status == 400
        assert "document" in reply.text
        assert DOCUMENT.remedy in reply.text


def low(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, value: int) -> Limit:
    """Lower a limit for one test."""
    lowered = dataclasses.replace(getattr(limits, name), value=value)
    monkeypatch.setattr(module, name, lowered)
    return lowered


COUNTED: Mapping[str, tuple[ModuleType, str, str]] = {
    "LOCATIONS": (tenants, "create_location", "organization_id"),
    "MACHINES": (machines, "new_robot", "location"),
    "FRAGMENTS": (fragments, "create_fragment", "organization_id"),
    "REGISTRY_ITEMS": (items, "create_registry_item", "organization_id"),
}


@pytest.mark.parametrize("name", COUNTED)
async def test_one_more_than_the_limit_is_refused(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, method, field = COUNTED[name]
    place = cloud.first.location if field == "location" else cloud.first.organization
    extra = {"type": "MODULE"} if name == "REGISTRY_ITEMS" else {}
    lowered = low(monkeypatch, module, name, 2 if name == "LOCATIONS" else 1)  # one location exists already
    await cloud.app(method, name="one", **{field: place}, **extra)
    text = await refused(lowered, cloud, method, name="two", **{field: place}, **extra)
    assert lowered.kind is ErrorKind.EXHAUSTED
    assert "already" in text


async def test_keys_parts_secrets_tags_and_datasets_are_counted(
    cloud: MemoryCloud, machine: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = {"authorization_type": "role", "resource_type": "organization", "resource_id": cloud.first.organization}
    grant = {**owner, "authorization_id": "organization_owner", "organization_id": cloud.first.organization}
    fragment = await cloud.app(
        "create_fragment", name="f", organization_id=cloud.first.organization, config={"components": []}
    )
    await cloud.app("set_fragment_tag", fragment_id=fragment["id"], tag="stable", revision="1")
    cases: list[tuple[ModuleType, str, str, dict[str, Any]]] = [
        (keys, "KEYS", "create_key", {"authorizations": [grant], "name": "k"}),
        (machines, "PARTS", "new_robot_part", {"robot_id": machine, "part_name": "second"}),
        (machines, "PART_SECRETS", "create_robot_part_secret", {"part_id": part}),
        (
            fragments,
            "FRAGMENT_TAGS",
            "set_fragment_tag",
            {"fragment_id": fragment["id"], "tag": "next", "revision": "1"},
        ),
    ]
    for module, name, method, arguments in cases:
        await refused(low(monkeypatch, module, name, 1), cloud, method, **arguments)
    await cloud.app(
        "set_fragment_tag", fragment_id=fragment["id"], tag="stable", revision="1"
    )  # moving a tag adds none
    lowered = low(monkeypatch, datasets, "DATASETS", 0)
    with pytest.raises(MachineError, match=f"`{lowered.name}`"):
        await cloud.client().call(
            "viam.app.dataset.v1.DatasetService",
            "",
            "create_dataset",
            name="d",
            organization_id=cloud.first.organization,
        )

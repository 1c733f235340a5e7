"""Secrets at any depth, under any telltale name: never on an operator's page, in a log, an error or the audit.

Every secret begins with a word that occurs nowhere else, so that one search for the word is enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Route

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key, grants_of, organization_of
from cloud.domain.permissions import audit
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.shown import shown
from cloud.editing.merging import merged
from cloud.editing.review import review
from cloud.server.memory import APP, ROBOT, MemoryCloud, open_cloud
from cloud.services.target import CALLS, SERVICES
from cloud.values.author import KEY, PART, Author
from cloud.web.app import application
from cloud.web.views import editor
from schema.document.machine import decode_document_value
from schema.errors import ErrorKind, MachineError
from schema.secrets import Masker, masks_in
from tests.unit.cloud.pages import post, signed_in
from tests.unit.cloud.web.test_web_fleet import key_at

WORD = "KANARI"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUERIES = ("", "?from=1&to=3", "?from=2&to=3", "?before=3")
PARTS = st.text("abcXYZ0123456789+/-_.", min_size=6, max_size=20)
SECRETS = PARTS.map(lambda text: f"{WORD}7{text}")
KEYS = [
    "password",
    "Password",
    "wifiPassword",
    "wifi_psk",
    "api_key",
    "apiKey",
    "API_KEY",
    "x-api-key",
    "access_token",
    "MY_TOKEN",
    "client_secret",
    "secret",
    "secrets",
    "passphrase",
    "authorization",
    "credentials",
    "private_key",
    "payload",
    "pwd",
    "smtp_password",
]
NAMES = st.sampled_from(KEYS)
PLAIN = st.sampled_from(["a", "options", "list", "rate", "nested", "camera"])


def surrounded(secret: str) -> list[dict[str, Any]]:
    """Return attributes in which the context, not the key, indicates a secret."""
    return [
        {"url": f"rtsp://me:{secret}@camera/1"},
        {"command": f"login --token={secret} now"},
        {"header": f"Bearer {secret}"},
        {"settings": [{"name": "API_KEY", "value": secret}]},
        {"settings": [{"key": "db_password", "value": {"text": secret}}]},
        {"text": json.dumps({"password": secret})},
    ]


def holders(secret: str) -> st.SearchStrategy[Any]:
    """Generate JSON-like attributes with a secret in them."""
    lines = st.sampled_from(surrounded(secret))
    leaf = st.one_of(lines, NAMES.map(lambda name: {name: secret}), NAMES.map(lambda name: {name: [secret]}))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(lambda name, value: {name: value}, PLAIN, inner),
            inner.map(lambda value: {"list": [1, value]}),
            inner.map(lambda value: {**value, "note": f"it is {secret}, remember"}),
        ),
        max_leaves=4,
    )


def component(name: str, attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": "rdk:component:sensor", "model": "fake", "attributes": attributes}


def places(secret: Callable[[], str]) -> dict[str, Any]:
    """Return a document with a secret in every place that the configuration format has for one."""
    own = secret()
    return {
        "modules": [{"name": "m", "executable_path": "/m", "type": "local", "env": {"ANY": secret(), "N": secret()}}],
        "remotes": [{"name": "r", "address": "r:1", "auth": {"credentials": {"type": "api-key", "payload": secret()}}}],
        "auth": {"handlers": [{"type": "api-key", "config": {"some-id": secret()}}]},
        "agent": {"network_configuration": {"psk": secret()}},
        "trigger_settings": {"secret": secret()},
        "triggers": [
            {
                "name": "t",
                "event": {"type": "part_online"},
                "secret": own,
                "notifications": [
                    {"type": "webhook", "value": f"https://u:{secret()}@example.com/", "secret": own},
                    {"type": "webhook", "value": "https://example.com/", "auth": {"user": "u", "password": secret()}},
                    {"type": "webhook", "value": f"https://example.com/services/{secret()}?room={secret()}"},
                ],
            }
        ],
        "fragment_mods": [
            {"fragment_id": "f", "mods": [{"$set": {"components.left.attributes.password": secret()}}]},
        ],
        "nonsense": {"token": secret()},
    }


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Generate a configuration with secrets."""
    there = places(lambda: draw(SECRETS))
    chosen = draw(st.sets(st.sampled_from(sorted(there))))
    some = [component(f"c{number}", draw(holders(draw(SECRETS)))) for number in range(draw(st.integers(0, 2)))]
    return {"components": some, "services": [], **{key: there[key] for key in sorted(chosen)}}


def everything(letter: str) -> dict[str, Any]:
    """Return a configuration with every kind of secret."""
    numbers = count(100)

    def secret() -> str:
        return f"{WORD}{next(numbers)}{letter}"

    attributes = [*({name: secret()} for name in KEYS), *surrounded(secret())]
    some = [component(f"c{number}", {**first, "n": letter}) for number, first in enumerate(attributes)]
    return {"components": some, "services": [], **places(secret)}


def quiet(what: str, text: str) -> None:
    at = text.find(WORD)
    assert at < 0, f"{what}: ...{text[max(0, at - 150) : at + 60]}"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(), documents())
def test_descriptions_of_changes(old: dict[str, Any], new: dict[str, Any]) -> None:
    quiet("the difference", repr(review(old, new)))
    decoded = decode_document_value(new)
    quiet("problems", " ".join(str(item) for item in (*decoded.problems, *decoded.warnings)))
    result = audit.loggable(
        {"config": new, "robot_config_json": json.dumps(new), "value": json.dumps(new), "data": new}
    )
    quiet("the audit log", json.dumps(result))
    masker = Masker().and_those_of(old).and_those_of(new)
    quiet("a document as operators see it", json.dumps(masker.value(new)))
    quiet("conflicts", repr(editor.conflicts_of(merged({}, old, new), old, new)))


@pytest.fixture(autouse=True)
def _quiet_log(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    quiet("the log", caplog.text)


async def test_an_operator_sees_no_secret_on_any_page() -> None:
    old, new = everything("a"), everything("b")
    async with open_cloud() as cloud:
        first = cloud.first
        machine = await cloud.app("new_robot", name="rover", location=first.location)
        part = (await cloud.app("get_robot_parts", robot_id=machine))[0]["id"]
        shared = {"components": [component("left", {"password": f"{WORD}9shared", "of": {"$variable": {"name": "x"}}})]}
        shared["components"][0]["attributes"]["token"] = {"$variable": {"name": "x"}}
        fragment = await cloud.app("create_fragment", name="f", organization_id=first.organization, config=shared)
        for item in (old, new):
            item["fragments"] = [{"id": fragment["id"], "variables": {"x": f"{WORD}9variable"}}]
            item["fragment_mods"][0]["fragment_id"] = fragment["id"]
        await save(cloud, part, old)
        await save(cloud, part, new)
        person = await signed_in(cloud, await key_at(cloud, "organization", first.organization))
        walked = 0
        for route in application(cloud.cloud, loopback=True)._app.routes:
            if not isinstance(route, Route) or "GET" not in (route.methods or ()) or "static" in route.path:
                continue
            for subject in {machine, part, fragment["id"]} if "{" in route.path else {""}:
                path = re.sub(r"\{[^}]*\}", subject, route.path)
                for query in QUERIES if "history" in path else ("",):
                    reply = await person.get(path + query)
                    walked += reply.status == 200
                    quiet(f"{path}{query}", reply.body.decode(errors="replace"))
        assert walked > 20
        for action in ("review", "save", "check"):
            form = {"action": action, "text": json.dumps(new), "base": "3"}
            reply = await post(person, f"/machines/{part}/config", **form)
            quiet(f"what comes of {action}", reply.text)
        rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT * FROM audit"))
        quiet("the audit log", repr(rows))
        with pytest.raises(MachineError) as caught:
            await cloud.app("update_robot_part", id=part, name="", robot_config_json=json.dumps(new)[:-1])
        quiet("an error", str(caught.value))


async def save(cloud: MemoryCloud, part: str, document: Mapping[str, Any]) -> None:
    await cloud.app("update_robot_part", id=part, name="", robot_config_json=json.dumps(document))


@dataclass
class Planted:
    """A cloud in which every document holds secrets, and callers who must not read them."""

    cloud: MemoryCloud
    ids: Mapping[ObjectKind, str]
    readers: Mapping[str, Author]
    made: tuple[str, ...]  # secrets that the cloud created


@pytest.fixture
async def planted(cloud: MemoryCloud, machine: str, part: str) -> Planted:
    first, store = cloud.first, cloud.cloud.store
    variable = {"$variable": {"name": "x"}}
    attributes = {"password": f"{WORD}9shared", "token": variable, "of": variable}
    config = {"components": [component("left", attributes)]}
    fragment = (await cloud.app("create_fragment", name="f", organization_id=first.organization, config=config))["id"]
    await cloud.app("update_fragment", id=fragment, name="f", config={**config, "debug": True})
    for item in (everything("a"), everything("b")):
        item["fragments"] = [{"id": fragment, "variables": {"x": f"{WORD}9variable"}}]
        item["fragment_mods"][0]["fragment_id"] = fragment
        await save(cloud, part, item)
    data = {"token": f"{WORD}8metadata"}
    await cloud.app("update_organization_metadata", organization_id=first.organization, data=data)
    await cloud.app("update_location_metadata", location_id=first.location, data=data)
    await cloud.app("update_robot_metadata", id=machine, data=data)
    await cloud.app("update_robot_part_metadata", id=part, data=data)
    located = (await cloud.app("create_location_secret", location_id=first.location))["secrets"][0]["secret"]
    secret = (await cloud.app("get_robot_part", id=part))["part"]["secret"]
    guest = await store.write(lambda sql: create_owner(sql, "Guest", NOW))
    await cloud.app("share_location", location_id=first.location, organization_id=guest.organization)

    async def key(owner: str, kind: Any, subject: str) -> Author:
        grants = [Grant("operator", kind, subject)]
        return Author(KEY, (await store.write(lambda sql: create_key(sql, owner, "op", grants, NOW)))[0])

    readers = {
        "operator": await key(first.organization, "organization", first.organization),
        "operator of the machine": await key(first.organization, "robot", machine),
        "guest operator": await key(guest.organization, "organization", guest.organization),
    }
    ids = {
        ObjectKind.ORGANIZATION: first.organization,
        ObjectKind.LOCATION: first.location,
        ObjectKind.ROBOT: machine,
        ObjectKind.PART: part,
        ObjectKind.FRAGMENT: fragment,
    }
    return Planted(cloud, ids, readers, (secret, located, first.key))


ASKED_BY: Mapping[str, Mapping[str, ObjectKind]] = {
    "get_fragment": {"id": ObjectKind.FRAGMENT},
    "list_nested_fragments": {"fragment_id": ObjectKind.FRAGMENT},
    "get_organization": {"organization_id": ObjectKind.ORGANIZATION},
    "list_locations": {"organization_id": ObjectKind.ORGANIZATION},
    "list_machine_summaries": {"organization_id": ObjectKind.ORGANIZATION},
}
"""Ids for calls without a role in the table."""


async def test_only_owners_read_secrets_by_any_call(planted: Planted) -> None:
    answered = set()
    for service, rules in CALLS.items():
        for name, rule in rules.items():
            of = {rule.field: rule.of} if rule.of is not None else ASKED_BY.get(name, {})
            if audit.is_change(name) or any(item not in planted.ids for item in of.values()) or "tail" in name:
                continue
            for who, reader in planted.readers.items():
                method = getattr(SERVICES[service](planted.cloud.cloud, reader), name)
                values = {field: planted.ids[first] for field, first in of.items() if first is not None}
                if name == "get_robot_part_by_name_and_location":
                    values["name"] = "rover-main"
                try:
                    result = repr(await method(**values))
                except (MachineError, TypeError) as error:
                    result = str(error)
                else:
                    answered.add(name)
                quiet(f"{name} as {who}", result)
                assert not any(element in result for element in planted.made), f"{name} as {who}"
    assert {
        "get_robot_part", "get_robot_parts", "get_robot_part_history", "get_fragment", "get_fragment_history",
        "list_fragments", "list_nested_fragments", "list_machine_fragments", "get_robot_metadata",
        "get_organization_metadata", "get_location_metadata", "get_robot_part_metadata",
        "get_robot_part_by_name_and_location",
    } <= answered  # fmt: skip


async def test_owners_and_the_machine_read_complete_documents(planted: Planted) -> None:
    cloud, part = planted.cloud, planted.ids[ObjectKind.PART]
    whole = everything("b")["nonsense"]["token"]
    answer = await cloud.app("get_robot_part", id=part)
    assert whole in answer["config_json"]
    assert whole in json.dumps(answer["part"]["robot_config"])
    assert f"{WORD}9shared" in repr(await cloud.app("get_fragment", id=planted.ids[ObjectKind.FRAGMENT]))
    assert f"{WORD}9shared" in repr(await cloud.app("list_machine_fragments", machine_id=planted.ids[ObjectKind.ROBOT]))
    config = await cloud.client(part, PART).call(ROBOT, "", "config", id=part)
    assert f"{WORD}9variable" in repr(config)


async def test_a_document_without_its_secrets_does_not_overwrite_them(planted: Planted) -> None:
    cloud, part, fragment = planted.cloud, planted.ids[ObjectKind.PART], planted.ids[ObjectKind.FRAGMENT]
    reader = cloud.client(planted.readers["operator"].name)
    copied = (await reader.call(APP, "", "get_robot_part", id=part))["config_json"]
    before = (await cloud.app("get_robot_part", id=part))["config_json"]
    shared = (await reader.call(APP, "", "get_fragment", id=fragment))["fragment"]["fragment_config_json"]
    for method, arguments in (
        ("update_robot_part", {"id": part, "name": "", "robot_config_json": copied}),
        ("update_fragment", {"id": fragment, "name": "f", "fragment_config_json": shared}),
        ("update_robot_metadata", {"id": planted.ids[ObjectKind.ROBOT], "data": {"token": "***"}}),
    ):
        with pytest.raises(MachineError, match="is a mask, not the secret") as caught:
            await cloud.app(method, **arguments)
        assert caught.value.kind is ErrorKind.INVALID
    assert (await cloud.app("get_robot_part", id=part))["config_json"] == before


async def test_an_existing_mask_may_stay(cloud: MemoryCloud, part: str) -> None:
    old = json.dumps({"components": [component("left", {"password": "***", "n": 1})]}, separators=(",", ":"))
    statement = "UPDATE configurations SET document = ? WHERE part_id = ?"
    await cloud.cloud.store.write(lambda sql: sql.run(statement, old, part))
    await save(cloud, part, {"components": [component("left", {"password": "***", "n": 2})]})
    both = [component(name, {"password": "***", "n": 2}) for name in ("left", "right")]
    with pytest.raises(MachineError, match=r"components\.1\.attributes\.password: \*\*\*"):
        await save(cloud, part, {"components": both})


@pytest.mark.parametrize("who", ["guest operator", "operator of the machine"])
async def test_no_page_shows_a_secret_to_callers_without_access(planted: Planted, who: str) -> None:
    cloud, reader = planted.cloud, planted.readers[who]
    organization = await cloud.cloud.store.read(lambda sql: organization_of(sql, reader.name))
    grants = await cloud.cloud.store.read(lambda sql: grants_of(sql, reader.name))
    key = await cloud.cloud.store.write(lambda sql: create_key(sql, organization, "page", list(grants), NOW))
    person, walked = await signed_in(cloud, key), 0
    for route in application(cloud.cloud, loopback=True)._app.routes:
        if not isinstance(route, Route) or "GET" not in (route.methods or ()) or "static" in route.path:
            continue
        for subject in sorted(planted.ids.values()) if "{" in route.path else [""]:
            path = re.sub(r"\{[^}]*\}", subject, route.path)
            reply = await person.get(path)
            walked += reply.status == 200
            quiet(path, reply.body.decode(errors="replace"))
            assert not any(item in reply.body.decode(errors="replace") for item in planted.made)
    assert walked > 10


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_every_masked_document_is_recognized(document: dict[str, Any]) -> None:
    assert list(masks_in(document)) == []
    copy = shown(document, whole=False)
    assert copy == document or list(masks_in(copy))

"""Secrets at any depth and under any name that tells of one: no page of an operator shows them, no log, error or audit.

Every secret begins with a word that stands nowhere else, so that one look for the word is enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Route

from cloud import audit
from cloud.editing.merging import merged
from cloud.editing.review import review
from cloud.memory import MemoryCloud, open_cloud
from cloud.web import editor
from cloud.web.app import application
from schema.errors import MachineError
from schema.machine import decode_value
from schema.secrets import Masker
from tests.unit.cloud.pages import post, signed_in
from tests.unit.cloud.test_web_fleet import key_at

WORD = "KANARI"
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
    """What tells of a secret by what stands around it."""
    return [
        {"url": f"rtsp://me:{secret}@camera/1"},
        {"command": f"login --token={secret} now"},
        {"header": f"Bearer {secret}"},
        {"settings": [{"name": "API_KEY", "value": secret}]},
        {"settings": [{"key": "db_password", "value": {"text": secret}}]},
        {"text": json.dumps({"password": secret})},
    ]


def holders(secret: str) -> st.SearchStrategy[Any]:
    """Something JSON-like with a secret in it, as drivers' attributes have them."""
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
    """Wherever the format of configurations has a place for secrets."""
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
    """A configuration with secrets."""
    there = places(lambda: draw(SECRETS))
    chosen = draw(st.sets(st.sampled_from(sorted(there))))
    some = [component(f"c{number}", draw(holders(draw(SECRETS)))) for number in range(draw(st.integers(0, 2)))]
    return {"components": some, "services": [], **{key: there[key] for key in sorted(chosen)}}


def everything(letter: str) -> dict[str, Any]:
    """A configuration with every kind of secret."""
    numbers = count(100)

    def secret() -> str:
        return f"{WORD}{next(numbers)}{letter}"

    attributes = [*({name: secret()} for name in KEYS), *surrounded(secret())]
    some = [component(f"c{number}", {**one, "n": letter}) for number, one in enumerate(attributes)]
    return {"components": some, "services": [], **places(secret)}


def quiet(what: str, text: str) -> None:
    at = text.find(WORD)
    assert at < 0, f"{what}: ...{text[max(0, at - 150) : at + 60]}"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(), documents())
def test_what_is_said_of_a_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    quiet("the difference", repr(review(old, new)))
    decoded = decode_value(new)
    quiet("problems", " ".join(str(one) for one in (*decoded.problems, *decoded.warnings)))
    told = audit.told({"config": new, "robot_config_json": json.dumps(new), "value": json.dumps(new), "data": new})
    quiet("the audit log", json.dumps(told))
    masker = Masker().and_those_of(old).and_those_of(new)
    quiet("a document as operators see it", json.dumps(masker.value(new)))
    quiet("conflicts", repr(editor.conflicts_of(merged({}, old, new), old, new)))


@pytest.fixture(autouse=True)
def _quiet_log(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    quiet("the log", caplog.text)


async def test_an_operator_sees_none_on_any_page() -> None:
    old, new = everything("a"), everything("b")
    async with open_cloud() as cloud:
        first = cloud.first
        machine = await cloud.app("new_robot", name="rover", location=first.location)
        part = (await cloud.app("get_robot_parts", robot_id=machine))[0]["id"]
        shared = {"components": [component("left", {"password": f"{WORD}9shared", "of": {"$variable": {"name": "x"}}})]}
        shared["components"][0]["attributes"]["token"] = {"$variable": {"name": "x"}}
        fragment = await cloud.app("create_fragment", name="f", organization_id=first.organization, config=shared)
        for one in (old, new):
            one["fragments"] = [{"id": fragment["id"], "variables": {"x": f"{WORD}9variable"}}]
            one["fragment_mods"][0]["fragment_id"] = fragment["id"]
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

"""The machine's interpretation of messages from the cloud."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from rpc.access.auth import credentials_of, digest_of
from rpc.access.credential_types import API_KEY
from schema.document.cloud import ApiKey, Cloud
from schema.document.machine import decode_document
from schema.errors import ConfigError
from telemetry.logs.entry import ERROR, Entry
from uplink.dial import address_of
from uplink.document import InvalidMessage, document_of
from uplink.log_upload import wire_entry

OWN = {"cloud": {"id": "part", "secret": "s", "app_address": "http://localhost:8090"}}
DIGEST = digest_of("the key")


def message(**document: Any) -> dict[str, Any]:
    return {
        "revision": "3",
        "document": document,
        "cloud": {"location_id": "here", "id": "another", "app_address": "http://elsewhere"},
        "keys": {"k1": DIGEST},
    }


def made(message: dict[str, Any], own: dict[str, Any] = OWN) -> dict[str, Any]:
    return json.loads(document_of(message, own))


def test_the_document_is_from_the_cloud_and_the_identity_from_the_file() -> None:
    whole = made(message(debug=True))
    assert whole["debug"] is True
    assert whole["revision"] == "3"
    assert whole["cloud"] == {**OWN["cloud"], "location_id": "here"}


@pytest.mark.parametrize(
    ("own", "theirs", "used"),
    [
        (None, None, None),
        ({"bind_address": ":1"}, None, {"bind_address": ":1"}),
        (None, {"bind_address": ":2"}, {"bind_address": ":2"}),
        ({"bind_address": ":1"}, {"bind_address": ":2"}, {"bind_address": ":2"}),
    ],
)
def test_the_network_of_the_file_counts_unless_the_cloud_has_one(own: Any, theirs: Any, used: Any) -> None:
    document = {"network": theirs} if theirs else {}
    assert made(message(**document), {**OWN, **({"network": own} if own else {})}).get("network") == used


@pytest.mark.parametrize(
    ("auth", "handlers"),
    [
        (None, [{"type": API_KEY, "config": {"k1": DIGEST}}]),
        ({}, [{"type": API_KEY, "config": {"k1": DIGEST}}]),
        (
            {"handlers": [{"type": API_KEY, "config": {"k2": "plain"}}]},
            [{"type": API_KEY, "config": {"k1": DIGEST, "k2": "plain"}}],
        ),
        (
            {"handlers": [{"type": API_KEY, "config": {"k2": "plain", "keys": ["k2"]}}]},
            [{"type": API_KEY, "config": {"k1": DIGEST, "k2": "plain", "keys": ["k2", "k1"]}}],
        ),
        (
            {"handlers": [{"type": "robot-location-secret", "config": {"secret": "x"}}]},
            [{"type": "robot-location-secret", "config": {"secret": "x"}}, {"type": API_KEY, "config": {"k1": DIGEST}}],
        ),
    ],
)
def test_keys_of_the_cloud_join_those_of_the_document(auth: Any, handlers: Any) -> None:
    whole = made(message(**({"auth": auth} if auth is not None else {})))
    assert whole["auth"]["handlers"] == handlers
    result, problems = credentials_of(whole["auth"]["handlers"], hosts=["rover"])
    assert not problems
    assert ("k1", DIGEST) in {(item.entity, item.payload) for item in result}


@pytest.mark.parametrize("auth", [5, {"handlers": 5}])
def test_an_auth_section_of_a_wrong_shape_is_left_to_the_schema(auth: Any) -> None:
    decoded = decode_document(document_of(message(auth=auth), OWN))
    assert decoded.document is None
    assert "auth" in str(decoded.problems[0])


@pytest.mark.parametrize(
    "wrong", [{}, {"document": 5}, {"document": {}, "keys": ["x"]}, {"document": {}, "cloud": "x"}]
)
def test_invalid_configurations_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        document_of(wrong, OWN)


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://localhost:8090", "http://localhost:8090"),
        ("https://cloud.example/", "https://cloud.example"),
        ("cloud.example:443", "https://cloud.example:443"),
    ],
)
def test_addresses_of_clouds(address: str, url: str) -> None:
    result = address_of(Cloud(id="p", secret="s", app_address=address))
    assert (result.url, result.entity, result.type) == (url, "p", "robot-secret")
    assert result.push_url.startswith(f"ws{url[4:]}/machine/v1/follow?part=p&platform=")
    assert "secret='s'" not in repr(result)


def test_an_api_key_is_preferred_to_the_secret() -> None:
    result = address_of(Cloud(id="p", secret="s", api_key=ApiKey(id="k", key="v"), app_address="http://localhost:1"))
    assert (result.entity, result.type, result.secret) == ("k", "api-key", "v")


@pytest.mark.parametrize("address", ["ftp://x", "http://", "http://x/path", "http://x?y"])
def test_invalid_cloud_addresses_are_refused(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        address_of(Cloud(id="p", secret="s", app_address=address))
    assert caught.value.path == "cloud.app_address"


def test_a_log_message_as_the_protocol_writes_it() -> None:
    entry = Entry(1, 1.5, ERROR, "rdk.x", "engine/host.py:12", "it broke", {"why": "heat"}, "Traceback")
    result = wire_entry(entry)
    assert result.pop("host")
    assert result == {
        "level": "error",
        "time": datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=UTC),
        "logger_name": "rdk.x",
        "message": "it broke",
        "caller": {"File": "engine/host.py", "Line": 12},
        "stack": "Traceback",
        "fields": [{"Key": "why", "Value": "heat"}],
    }

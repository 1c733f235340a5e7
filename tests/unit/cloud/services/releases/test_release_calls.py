"""machine.cloud.v1.ReleaseService over RPC: what people publish, roll out and see; uploads of files over HTTP."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.web.app import application
from rpc.access.credential_types import API_KEY
from rpc.api.client import ApiClient
from rpc.api.cloud_v1 import RELEASES
from rpc.carrier import Peer
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.pages import HOST, Browser
from tests.unit.cloud.release_help import opened
from tests.unit.cloud.web.test_web_fleet import key_at
from uplink.releases import MAX_METADATA

CONTENT = b"program 2.0.0"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
OLD = {"program": "machine-server", "version": "1.0.0"}
NEW = {"program": "machine-server", "version": "2.0.0"}


class Api:
    """Makes calls and uploads for the first organization with a key, by default that of its owner."""

    def __init__(self, cloud: MemoryCloud, key: tuple[str, str] = ("", "")) -> None:
        self._client: ApiClient = cloud.client(key[0])
        self._cloud, self._key = cloud, key if key[0] else (cloud.first.id, cloud.first.key)

    async def __call__(self, method: str, **arguments: Any) -> Any:
        return await self._client.call(
            RELEASES, "", method, organization_id=self._cloud.first.organization, **arguments
        )

    async def refused(self, method: str, **arguments: Any) -> MachineError:
        with pytest.raises(MachineError) as caught:
            await self(method, **arguments)
        return caught.value

    async def upload(self, content: bytes) -> tuple[int, Any]:
        """Upload a file as the one with the hash DIGEST; return the status and the answer."""
        token = await self._cloud.cloud.authenticator.sign_in(self._key[0], API_KEY, self._key[1], peer=Peer())
        browser = Browser(application(self._cloud.cloud, loopback=True), host=HOST)
        path = f"/api/v1/release-files/{self._cloud.first.organization}/{DIGEST}"
        reply = await browser.send("POST", path, {"authorization": f"Bearer {token}"}, content)
        return reply.status, json.loads(reply.body)


async def test_a_version_is_published_and_rolled_out(cloud: MemoryCloud) -> None:
    person, api = await opened(cloud, "1.0.0", channels=("stable", "dev")), Api(cloud)
    assert await api("has_release_file", sha256=DIGEST) is False
    assert await api.upload(CONTENT) == (200, {"size": len(CONTENT)})
    assert await api("has_release_file", sha256=DIGEST) is True
    person.add("2.0.0", CONTENT)
    content = person.targets(cloud.cloud.clock())
    roles = await api("update_release_metadata", targets_json=content)
    assert [role["version"] for role in roles if role["role"] == "targets"] == [2]
    assert await api("get_release_metadata", name="targets.json") == content

    started = await api("start_rollout", **NEW, percent=10, tags=["lab"], stop_after=2)
    assert (started["percent"], started["tags"], started["stop_after"]) == (10, ["lab"], 2)
    for state in ("paused", "active", "stopped"):
        assert (await api("set_rollout_state", **NEW, state=state))["state"] == state
    status = await api("get_rollout", **NEW)
    assert (status["rollout"]["reason"], status["machines"]) == ("stopped by a person", [])
    listed = await api("list_releases")
    assert [target["version"] for target in listed["targets"]] == ["1.0.0", "2.0.0"]
    assert [entry["state"] for entry in listed["rollouts"]] == ["stopped"]
    assert {entry["role"] for entry in listed["metadata"]} == {"root", "targets", "snapshot", "timestamp"}


async def test_a_rollout_without_options_selects_all_machines_and_never_stops(cloud: MemoryCloud) -> None:
    await opened(cloud, "1.0.0")
    started = await Api(cloud)("start_rollout", **OLD)
    assert (started["percent"], started["tags"], started["location_ids"], started["stop_after"]) == (100, [], [], -1)


async def test_a_rollout_may_stop_after_the_first_machine(cloud: MemoryCloud) -> None:
    await opened(cloud, "1.0.0")
    assert (await Api(cloud)("start_rollout", **OLD, stop_after=0))["stop_after"] == 0


@pytest.mark.parametrize(
    ("method", "arguments", "words", "kind"),
    [
        ("update_release_metadata", {}, "neither root.json nor targets.json", ErrorKind.INVALID),
        ("update_release_metadata", {"root": b"x"}, "no argument 'root'", ErrorKind.INVALID),
        ("update_release_metadata", {"targets_json": 1}, "targets_json", ErrorKind.INVALID),
        ("update_release_metadata", {"targets_json": b"{"}, "not TUF metadata", ErrorKind.INVALID),
        ("update_release_metadata", {"targets_json": b"\xff"}, "not TUF metadata", ErrorKind.INVALID),
        ("update_release_metadata", {"targets_json": b"[" * 5000}, "not TUF metadata", ErrorKind.INVALID),
        ("update_release_metadata", {"targets_json": b"x" * (MAX_METADATA + 1)}, "the limit is", ErrorKind.EXHAUSTED),
        ("start_rollout", {**OLD, "percent": "all"}, "percent", ErrorKind.INVALID),
        ("start_rollout", {**OLD, "percent": math.nan}, "above 0 and at most 100", ErrorKind.INVALID),
        ("start_rollout", {**OLD, "percent": 0}, "above 0 and at most 100", ErrorKind.INVALID),
        ("start_rollout", {**OLD, "stop_after": -1}, "must be 0 to 1,000,000", ErrorKind.INVALID),
        ("start_rollout", {**OLD, "tags": [1]}, "tags", ErrorKind.INVALID),
        ("set_rollout_state", OLD, "there is no state ''", ErrorKind.INVALID),
        ("set_rollout_state", {**OLD, "state": "gone"}, "there is no state 'gone'", ErrorKind.INVALID),
        ("get_release_metadata", {"name": "9.root.json"}, "9.root.json", ErrorKind.NOT_FOUND),
        ("get_rollout", OLD, "there is no rollout", ErrorKind.NOT_FOUND),
    ],
)
async def test_requests_that_are_not_valid(
    cloud: MemoryCloud, method: str, arguments: dict[str, Any], words: str, kind: ErrorKind
) -> None:
    await opened(cloud, "1.0.0")
    error = await Api(cloud).refused(method, **arguments)
    assert words in str(error)
    assert error.kind is kind


async def test_another_content_than_its_hash_is_refused(cloud: MemoryCloud) -> None:
    api = Api(cloud)
    status, reply = await api.upload(b"something else")
    assert (status, "not " + DIGEST in reply["error"]) == (400, True)
    assert await api("has_release_file", sha256=DIGEST) is False


CALLS: list[tuple[str, dict[str, Any], bool]] = [  # method, arguments, whether an operator may call it
    ("list_releases", {}, True),
    ("get_release_metadata", {"name": "targets.json"}, True),
    ("get_rollout", OLD, True),
    ("create_release_keys", {}, False),
    ("update_release_metadata", {}, False),
    ("has_release_file", {"sha256": DIGEST}, False),
    ("wait_for_release_import", {"number": 1}, True),
    ("start_release_import", {}, False),
    ("rotate_release_keys", {}, False),
    ("set_release_channels", {**OLD, "channels": ["dev"]}, False),
    ("start_rollout", OLD, False),
    ("set_rollout_state", {**OLD, "state": "paused"}, False),
]


@pytest.mark.parametrize(("method", "arguments", "operators"), CALLS)
async def test_roles(cloud: MemoryCloud, method: str, arguments: dict[str, Any], operators: bool) -> None:
    await opened(cloud, "1.0.0")
    await Api(cloud)("start_rollout", **OLD)
    operator = Api(cloud, await key_at(cloud, "organization", cloud.first.organization))
    if operators:
        assert await operator(method, **arguments)
    else:
        assert (await operator.refused(method, **arguments)).kind is ErrorKind.PERMISSION
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    assert (await Api(cloud, (other.id, other.key)).refused(method, **arguments)).kind is ErrorKind.NOT_FOUND


async def test_only_owners_upload(cloud: MemoryCloud) -> None:
    operator = Api(cloud, await key_at(cloud, "organization", cloud.first.organization))
    assert (await operator.upload(CONTENT))[0] == 403
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    await cloud.cloud.authenticator.load()
    assert (await Api(cloud, (other.id, other.key)).upload(CONTENT))[0] == 404
    assert await Api(cloud)("has_release_file", sha256=DIGEST) is False

"""The JSON API of releases: what people publish, roll out and see."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from cloud.domain.organizations.keys import Grant, create_key
from cloud.server.memory import MemoryCloud
from cloud.web.app import application
from rpc.access.auth import API_KEY
from rpc.carrier import Peer
from tests.unit.cloud.pages import HOST, Browser
from tests.unit.cloud.release_help import opened

CONTENT = b"program 2.0.0"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Api:
    """Sends requests with a key."""

    def __init__(self, cloud: MemoryCloud, headers: dict[str, str]) -> None:
        self._browser, self._headers = Browser(application(cloud.cloud, loopback=True), host=HOST), headers
        self.root = f"/api/v1/organizations/{cloud.first.organization}/releases"
        self.files = f"/api/v1/release-files/{cloud.first.organization}"

    async def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        reply = await self._browser.send(method, path, self._headers, content)
        return reply.status, json.loads(reply.body)


async def api(cloud: MemoryCloud, key: tuple[str, str] = ("", "")) -> Api:
    entity, secret = key if key[0] else (cloud.first.id, cloud.first.key)
    token = await cloud.cloud.authenticator.sign_in(entity, API_KEY, secret, peer=Peer())
    return Api(cloud, {"authorization": f"Bearer {token}"})


async def test_a_version_is_published_and_rolled_out(cloud: MemoryCloud) -> None:
    person, call = await opened(cloud, "1.0.0", channels=("stable", "dev")), await api(cloud)
    assert await call("GET", f"{call.root}/files/{DIGEST}") == (200, {"stored": False})
    assert await call("POST", f"{call.files}/{DIGEST}", CONTENT) == (200, {"size": len(CONTENT)})
    assert await call("GET", f"{call.root}/files/{DIGEST}") == (200, {"stored": True})
    person.add("2.0.0", CONTENT)
    text = person.targets(cloud.cloud.clock()).decode()
    status, roles = await call("POST", f"{call.root}/metadata", {"targets_json": text})
    assert (status, [role["version"] for role in roles if role["role"] == "targets"]) == (200, [2])
    assert (await call("GET", f"{call.root}/metadata/targets.json"))[1] == json.loads(text)

    rollout = f"{call.root}/rollouts/machine-server/2.0.0"
    status, started = await call("POST", rollout, {"percent": 10, "tags": ["lab"], "stop_after": 2})
    assert (status, started["percent"], started["tags"], started["stop_after"]) == (200, 10, ["lab"], 2)
    for state in ("paused", "active", "stopped"):
        assert (await call("POST", f"{rollout}/state", {"state": state}))[1]["state"] == state
    assert (await call("GET", rollout))[1]["rollout"]["reason"] == "stopped by a person"
    status, listed = await call("GET", call.root)
    assert [target["version"] for target in listed["targets"]] == ["1.0.0", "2.0.0"]
    assert [entry["state"] for entry in listed["rollouts"]] == ["stopped"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("metadata", {}, "neither root.json nor targets.json"),
        ("metadata", {"root": "x"}, "unknown field `root`"),
        ("metadata", {"targets_json": 1}, "Expected `str`"),
        ("metadata", b"{", "not JSON"),
        ("metadata", b"[" * 5000, "not valid"),
        ("metadata", b"x" * 3_000_000, "more than"),
        ("rollouts/machine-server/1.0.0", {"percent": "all"}, "Expected `float`"),
        ("rollouts/machine-server/1.0.0", {"tags": [1]}, "Expected `str`"),
        ("rollouts/machine-server/1.0.0/state", {}, "missing required field `state`"),
        ("rollouts/machine-server/1.0.0/state", {"state": "gone"}, "there is no state 'gone'"),
    ],
)
async def test_requests_that_are_not_valid(cloud: MemoryCloud, path: str, body: object, words: str) -> None:
    await opened(cloud, "1.0.0")
    call = await api(cloud)
    status, reply = await call("POST", f"{call.root}/{path}", body)
    assert status == 400
    assert words in reply["error"]


async def test_another_content_than_its_hash_is_refused(cloud: MemoryCloud) -> None:
    call = await api(cloud)
    status, reply = await call("POST", f"{call.files}/{DIGEST}", b"something else")
    assert (status, "not " + DIGEST in reply["error"]) == (400, True)
    assert await call("GET", f"{call.root}/files/{DIGEST}") == (200, {"stored": False})


async def test_operators_only_look(cloud: MemoryCloud) -> None:
    await opened(cloud, "1.0.0")
    owner = cloud.first.organization
    grants, now = [Grant("operator", "organization", owner)], cloud.cloud.clock()
    key = await cloud.cloud.store.write(lambda sql: create_key(sql, owner, "op", grants, now))
    call = await api(cloud, key)
    assert (await call("GET", call.root))[0] == 200
    for path in ("keys", "metadata", "rollouts/machine-server/1.0.0", "rollouts/machine-server/1.0.0/state"):
        assert (await call("POST", f"{call.root}/{path}", {}))[0] == 403
    assert (await call("POST", f"{call.files}/{DIGEST}", CONTENT))[0] == 403

"""Revocation of keys: the next call with a rotated or deleted key, or without the role, is refused, also at a replica
that receives no events. New keys work there at once, and logging out ends the session everywhere."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio
import trio.testing
from grpclib.exceptions import GRPCError

from cloud.domain.permissions import credentials
from cloud.domain.permissions.authentication import MAX_ASKED
from cloud.server.memory import APP, MemoryCloud
from cloud.web.app import application
from rpc.access.credential_types import PART_SECRET
from rpc.access.login import cookie_name
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.cloud.replicas import LIMIT, Replica, authorization_at, operator_key, replica
from tests.unit.runtime.parts.web.client import HTML, Browser

OPEN = ("/healthz", "/ca.pem", "/install.sh", "/static/", "/packages/", "/files/", "/invites/")  # no key needed

# ---- random sequences against a model


@dataclass
class Key:
    """The expected state of a key."""

    id: str
    secrets: list[str]  # the last one is valid
    roles: dict[tuple[str, str], str]  # (kind, id) -> role
    tokens: list[tuple[str, str]] = field(default_factory=list)  # (token, the secret that it was issued for)
    deleted: bool = False


class Model:
    """The expected state of the keys of one organization with one machine."""

    def __init__(self, cloud: MemoryCloud, machine: str, dice: random.Random) -> None:
        self.cloud, self.machine, self.dice = cloud, machine, dice
        self.organization, self.location = cloud.first.organization, cloud.first.location
        self.places = [("organization", self.organization), ("location", self.location), ("robot", machine)]
        owner = Key(cloud.first.id, [cloud.first.key], {self.places[0]: "owner"})
        self.keys = [owner]
        self.steps: list[Callable[[], Awaitable[None]]] = [
            self.create, self.rotate, self.delete, self.give, self.take, self.take
        ]  # fmt: skip

    def some(self) -> Key:
        return self.dice.choice([item for item in self.keys if not item.deleted])

    def alone(self, key: Key) -> bool:
        owners = [
            element for element in self.keys if not element.deleted and element.roles.get(self.places[0]) == "owner"
        ]
        return owners == [key]

    def authorization(self, key: Key, place: tuple[str, str], role: str) -> dict[str, str]:
        kind, subject = place
        return {
            "authorization_type": "role",
            "authorization_id": f"{kind}_{role}",
            "resource_type": kind,
            "resource_id": subject,
            "identity_id": key.id,
            "organization_id": self.organization,
            "identity_type": "api-key",
        }

    async def create(self) -> None:
        role, place = self.dice.choice(["owner", "operator"]), self.dice.choice(self.places)
        empty = Key("", [], {})
        created = await self.cloud.app("create_key", authorizations=[self.authorization(empty, place, role)], name="x")
        self.keys.append(Key(created["id"], [created["key"]], {place: role}))

    async def rotate(self) -> None:
        key = self.some()
        key.secrets.append((await self.cloud.app("rotate_key", id=key.id))["key"])

    async def delete(self) -> None:
        key = self.some()
        if await self.refused(self.alone(key), "delete_key", id=key.id):
            return
        key.deleted, key.roles = True, {}

    async def give(self) -> None:
        key, place, role = self.some(), self.dice.choice(self.places), self.dice.choice(["owner", "operator"])
        last = self.alone(key) and place == self.places[0] and role != "owner"
        if not await self.refused(last, "add_role", authorization=self.authorization(key, place, role)):
            key.roles[place] = role

    async def take(self) -> None:
        key = self.some()
        place = self.dice.choice(list(key.roles))
        last = len(key.roles) == 1 or (self.alone(key) and place == self.places[0])
        if not await self.refused(last, "remove_role", authorization=self.authorization(key, place, key.roles[place])):
            del key.roles[place]

    async def refused(self, expected: bool, method: str, **arguments: Any) -> bool:
        """Make a change; it must be refused exactly if `expected`. Return whether it was refused."""
        try:
            # as the program, which always has its roles: tests the last-owner rule, not the role of the caller
            await self.owner().call(APP, "", method, **arguments)
        except MachineError as error:
            refused = error.kind is ErrorKind.PRECONDITION
        else:
            refused = False
        assert refused is expected, (method, arguments)
        return refused

    def owner(self) -> ApiClient:
        owners = [result for result in self.keys if not result.deleted and result.roles.get(self.places[0]) == "owner"]
        self.cloud.first = replace(self.cloud.first, id=owners[0].id)
        return self.cloud.client()

    def expected(self, key: Key, secret: str, needed: str, place: tuple[str, str]) -> str:
        """Return the expected result of a call with a token for `secret`."""
        if key.deleted or key.secrets[-1] != secret:
            return ErrorKind.UNAUTHENTICATED.value
        reach = self.places[: self.places.index(place) + 1]
        roles = {role for where, role in key.roles.items() if where in reach}
        if not roles:
            return ErrorKind.NOT_FOUND.value
        return "ok" if needed == "operator" or "owner" in roles else ErrorKind.PERMISSION.value


async def check(model: Model, replicas: list[Replica]) -> None:
    """Check the current and the previous secret and some tokens of every key at every replica."""
    async with trio.open_nursery() as nursery:  # concurrent, because concurrent callers share queries
        for key in model.keys:
            for item in replicas:
                nursery.start_soon(check_key, model, key, item)
    for key in model.keys:
        key.tokens = model.dice.sample(key.tokens, min(3, len(key.tokens)))


async def check_key(model: Model, key: Key, item: Replica) -> None:
    """Check one key at one replica."""
    # tokens first, because logging in caches the key
    for token, secret in list(key.tokens):
        expected = model.expected(key, secret, "operator", model.places[2])
        assert await item.call(token, "get_robot", id=model.machine) == expected
        expected = model.expected(key, secret, "owner", model.places[1])
        assert await item.call(token, "update_location", location_id=model.location, name="Test") == expected
    for secret in key.secrets[-2:]:
        good = not key.deleted and secret == key.secrets[-1]
        with nullcontext() if good else pytest.raises(GRPCError, match="the credentials are wrong"):
            key.tokens.append((await item.sign_in(key.id, secret), secret))


@pytest.mark.parametrize("seed", range(3))
async def test_every_call_sees_the_latest_change_of_keys(cloud: MemoryCloud, machine: str, seed: int) -> None:
    model = Model(cloud, machine, random.Random(seed))
    async with replica(cloud, hears=True) as (near, _), replica(cloud, hears=False) as (far, _):
        for _ in range(15):
            model.owner()
            await model.dice.choice(model.steps)()
            await check(model, [near, far])


# ---- number of queries


async def test_many_unknown_keys_cause_few_queries(cloud: MemoryCloud) -> None:
    refused = 0

    async with replica(cloud, hears=True) as (near, store):
        before = store.reads

        async def knock(number: int) -> None:
            nonlocal refused
            with pytest.raises(GRPCError):
                await near.sign_in(f"unknown-{number}", "secret")
            refused += 1

        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                for number in range(2 * MAX_ASKED):
                    nursery.start_soon(knock, number)
        assert refused == 2 * MAX_ASKED
        assert store.reads - before <= 4


async def test_during_an_outage_of_the_database_cached_keys_are_valid(cloud: MemoryCloud) -> None:
    async with replica(cloud, hears=False) as (far, store):
        created = await cloud.cloud.store.write(lambda sql: operator_key(sql, cloud))
        store.away = True
        assert await far.sign_in(cloud.first.id, cloud.first.key)
        with pytest.raises(GRPCError):
            await far.sign_in(*created)
        store.away = False
        with trio.fail_after(LIMIT):
            assert await far.sign_in(*created)


async def test_a_too_long_name_causes_no_query(cloud: MemoryCloud) -> None:
    async with replica(cloud, hears=True) as (near, store):
        before = store.reads
        with pytest.raises(GRPCError):
            await near.sign_in("x" * 10_000, "secret")
        assert store.reads == before


async def test_a_part_logs_in_with_a_secret_of_another_replica_until_it_is_deleted(
    cloud: MemoryCloud, part: str
) -> None:
    async with replica(cloud, hears=False) as (far, _):
        created = await cloud.app("create_robot_part_secret", part_id=part)
        secrets = [secret["secret"] for secret in created["secrets"]]
        tokens = [await far.sign_in(part, item, PART_SECRET) for item in secrets]
        assert [await far.call(token, "get_robot_part", id=part) for token in tokens] == ["permission", "permission"]
        await cloud.app("delete_robot_part_secret", part_id=part, secret_id=created["secrets"][0]["id"])
        assert await far.call(tokens[0], "get_robot_part", id=part) == "unauthenticated"
        assert await far.call(tokens[1], "get_robot_part", id=part) == "permission"
        with pytest.raises(GRPCError):
            await far.sign_in(part, secrets[0], PART_SECRET)


# ---- logging out


def _at_replica(item: Replica, cookies: dict[str, str]) -> Browser:
    """Return a browser with the same cookies at another replica."""
    person = Browser(application(item.cloud, loopback=True), host=HOST)
    person.cookies = cookies
    return person


async def _pages(created: Browser) -> str:
    """Return the status of the start page, or the target if it redirects."""
    reply = await created.send("GET", "/", HTML)
    return reply.headers["location"] if reply.status == 303 else str(reply.status)


@pytest.mark.parametrize("hears", [True, False])
async def test_a_logout_applies_to_all_replicas_and_survives_a_restart(cloud: MemoryCloud, hears: bool) -> None:
    person, other = await signed_in(cloud), await signed_in(cloud)
    cookies = dict(person.cookies)
    ((_, token),) = cookies.items()
    async with replica(cloud, hears=hears) as (far, _):
        there = _at_replica(far, cookies)
        assert await _pages(there) == "200"
        assert (await post(person, "/logout")).status == 303
        assert await _pages(there) == "/login?next=/"
        assert await far.call(token, "list_organizations") == "unauthenticated"
        assert await _pages(_at_replica(far, other.cookies)) == "200"  # the same key in another session
        assert (await post(there, "/logout")).status == 303  # logging out twice is not an error
    async with replica(cloud, hears=hears) as (restarted, _):
        assert await restarted.call(token, "list_organizations") == "unauthenticated"
        assert await _pages(_at_replica(restarted, cookies)) == "/login?next=/"


async def test_open_pages_end_at_logout(cloud: MemoryCloud) -> None:
    person = await signed_in(cloud)
    async with replica(cloud, hears=True) as (far, _):
        async with person.live("/live/machines", {"origin": f"http://{HOST}"}) as page:
            await page.patch()
            assert (await post(_at_replica(far, dict(person.cookies)), "/logout")).status == 303
            with trio.fail_after(LIMIT):
                message = await page.message()
                while message["type"] != "websocket.close":
                    message = await page.message()
    assert await _pages(person) == "/login?next=/"


async def test_an_outage_of_the_database_logs_no_one_out(cloud: MemoryCloud) -> None:
    cookies = dict((await signed_in(cloud)).cookies)
    async with replica(cloud, hears=False) as (far, store):
        there = _at_replica(far, cookies)
        store.away = True
        reply = await post(there, "/logout")
        assert (reply.status, "set-cookie" in reply.headers) == (503, False)
        assert "database is away" in reply.text
        store.away = False
        assert await _pages(there) == "200"
        assert (await post(there, "/logout")).status == 303
        assert await _pages(_at_replica(far, cookies)) == "/login?next=/"


async def test_a_logout_is_deleted_when_the_session_would_have_expired(cloud: MemoryCloud) -> None:
    store, ends = cloud.cloud.store, datetime(2027, 1, 1, tzinfo=UTC)
    for name, later in (("a", 0), ("b", 1)):
        moment = int(ends.timestamp()) + later
        await store.write(lambda sql, name=name, moment=moment: credentials.sign_out(sql, "key", name, moment))
    for later, left in ((0, ["a", "b"]), (1, ["b"]), (2, [])):
        await store.write(lambda sql, later=later: credentials.expire(sql, ends + timedelta(seconds=later)))
        rows = await store.read(lambda sql: sql.rows("SELECT token FROM signed_out ORDER BY token"))
        assert [row["token"] for row in rows] == left


async def test_tokens_of_programs_are_not_affected_by_logout(cloud: MemoryCloud) -> None:
    async with replica(cloud, hears=True) as (near, _):
        token = await near.sign_in(cloud.first.id, cloud.first.key)
        cookie = cookie_name(cloud.cloud.authenticator.instance, secure=False)
        reply = await post(_at_replica(near, {cookie: token}), "/logout")
        assert (reply.status, "rotate or delete the key" in reply.text) == (400, True)
        assert await near.call(token, "list_organizations") == "ok"


async def test_no_page_is_shown_after_logout(cloud: MemoryCloud) -> None:
    """Every page checks the session, even at a replica that receives no events."""
    person = await signed_in(cloud)
    cookies = dict(person.cookies)
    async with replica(cloud, hears=False) as (far, _):
        await post(person, "/logout")
        there = _at_replica(far, cookies)
        inner = application(far.cloud, loopback=True)._app
        shown, asked = [], 0
        for route in inner.routes:
            path = re.sub(r"\{[^}]*\}", "x", route.path)
            if "GET" in (getattr(route, "methods", None) or ()) and not path.startswith(OPEN):
                asked += 1
                reply = await there.send("GET", path, HTML)
                shown += [path] if reply.status < 300 else []
        assert asked > 20
        assert shown == []


# ---- last owner


@pytest.mark.parametrize("way", ["delete_key", "remove_role", "change_role", "add_role"])
async def test_an_organization_keeps_an_owner(cloud: MemoryCloud, way: str) -> None:
    own = {**authorization_at(cloud, "organization", cloud.first.organization, cloud.first.id)}
    owner, operator = {**own, "authorization_id": "organization_owner"}, own
    await cloud.app("add_role", authorization=authorization_at(cloud, "location", cloud.first.location, cloud.first.id))
    ways: dict[str, dict[str, Any]] = {
        "delete_key": {"id": cloud.first.id},
        "remove_role": {"authorization": owner},
        "change_role": {"old_authorization": owner, "new_authorization": operator},
        "add_role": {"authorization": operator},
    }
    arguments = ways[way]
    with pytest.raises(MachineError, match=r"only key with the role of an owner.*create another") as caught:
        await cloud.app(way, **arguments)
    assert caught.value.kind is ErrorKind.PRECONDITION
    kept = await cloud.app("list_keys", org_id=cloud.first.organization)
    assert "organization_owner" in [authorization["authorization_id"] for authorization in kept[0]["authorizations"]]
    await cloud.app("create_key", authorizations=[{**owner, "identity_id": ""}], name="second")
    await cloud.app(way, **arguments)

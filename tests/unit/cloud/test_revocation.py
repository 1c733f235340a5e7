"""Keys that change: what was rotated, deleted or lost its role is refused by the next call, also at a replica that
has heard of nothing; what was just made is let in there. Streams end."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import trio
import trio.testing
from grpclib.exceptions import GRPCError

from cloud.authentication import MAX_ASKED, CloudAuthenticator, open_signer
from cloud.keys import Grant, create_key
from cloud.memory import APP, ROBOT, MemoryCloud
from cloud.store.events import Events
from cloud.store.sql import Sql, Store, Work
from cloud.target import CloudRouter
from cloud.web.closing import AGAIN, GONE, REFUSED
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from rpc.auth import API_KEY, PART_SECRET
from rpc.carrier import Peer
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.pages import HOST, browser, signed_in
from tests.unit.cloud.test_web_machine import Machine, connected, machine_token

LIMIT = 30.0  # seconds for what takes milliseconds
LIST = "/viam.app.v1.AppService/ListOrganizations"


class Counted:
    """A store that counts what is read."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reads = 0
        self.away = False
        self.refused = trio.Event()

    async def read(self, work: Work[Any]) -> Any:
        self.reads += 1
        if self.away:
            self.refused.set()
            raise MachineError("the database is away", kind=ErrorKind.UNAVAILABLE)
        return await self.store.read(work)

    async def write(self, work: Work[Any]) -> Any:
        return await self.store.write(work)


class Replica:
    """The side of a cloud that faces the network: tokens instead of identities."""

    def __init__(self, cloud: MemoryCloud, authenticator: CloudAuthenticator, store: Store, events: Events) -> None:
        self.cloud = replace(cloud.cloud, authenticator=authenticator, store=store, events=events)
        self.authenticator = authenticator
        self.router = CloudRouter(self.cloud)
        self._peers = iter(range(1 << 30))

    async def sign_in(self, entity: str, secret: str, kind: str = API_KEY) -> str:
        number = next(self._peers)  # each from elsewhere: attempts are counted for each address
        peer = Peer((f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 1))
        return await self.authenticator.sign_in(entity, kind, secret, peer=peer)

    def client(self, token: str) -> ApiClient:
        identity = self.authenticator.authorize(LIST, {"authorization": f"Bearer {token}"})
        return ApiClient(MemoryChannel(self.router, identity=identity))

    async def call(self, token: str, method: str, **arguments: Any) -> str:
        """How a call ends, in a word."""
        try:
            await self.client(token).call(APP, "", method, **arguments)
        except GRPCError as error:
            return str(error.status.name).lower()
        except MachineError as error:
            return error.kind.value
        return "ok"


@asynccontextmanager
async def replica(cloud: MemoryCloud, *, hears: bool) -> AsyncIterator[tuple[Replica, Counted]]:
    """One more replica on the same database. One that does not hear of what happens is the worst case."""
    events = cloud.cloud.events if hears else Events()
    store = Counted(cloud.cloud.store)
    authenticator = CloudAuthenticator(await open_signer(store), store, events)
    async with trio.open_nursery() as nursery:
        await nursery.start(authenticator.run)
        yield Replica(cloud, authenticator, store, events), store
        nursery.cancel_scope.cancel()


# ---- random sequences against a model


@dataclass
class Key:
    """What the model knows of a key."""

    id: str
    secrets: list[str]  # the last one counts
    roles: dict[tuple[str, str], str]  # (kind, id) -> role
    tokens: list[tuple[str, str]] = field(default_factory=list)  # (token, the secret that it was given for)
    deleted: bool = False


class Model:
    """Keys of one organization with one machine, as they should be."""

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
        return self.dice.choice([one for one in self.keys if not one.deleted])

    def alone(self, key: Key) -> bool:
        owners = [one for one in self.keys if not one.deleted and one.roles.get(self.places[0]) == "owner"]
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
        made = await self.cloud.app("create_key", authorizations=[self.authorization(empty, place, role)], name="x")
        self.keys.append(Key(made["id"], [made["key"]], {place: role}))

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
        """Carry out a change that must be refused if it would leave nobody, and not otherwise."""
        try:
            # as the program, whose roles nobody takes: what the model wants is to be tried, whoever may
            await self.owner().call(APP, "", method, **arguments)
        except MachineError as error:
            refused = error.kind is ErrorKind.PRECONDITION
        else:
            refused = False
        assert refused is expected, (method, arguments)
        return refused

    def owner(self) -> ApiClient:
        owners = [one for one in self.keys if not one.deleted and one.roles.get(self.places[0]) == "owner"]
        self.cloud.first = replace(self.cloud.first, id=owners[0].id)
        return self.cloud.client()

    def expected(self, key: Key, secret: str, needed: str, place: tuple[str, str]) -> str:
        """How a call with a token for `secret` ends."""
        if key.deleted or key.secrets[-1] != secret:
            return ErrorKind.UNAUTHENTICATED.value
        reach = self.places[: self.places.index(place) + 1]
        roles = {role for where, role in key.roles.items() if where in reach}
        if not roles:
            return ErrorKind.NOT_FOUND.value
        return "ok" if needed == "operator" or "owner" in roles else ErrorKind.PERMISSION.value


async def check(model: Model, replicas: list[Replica]) -> None:
    """Every secret that counts or has counted last and some tokens, at every replica."""
    async with trio.open_nursery() as nursery:  # at once: those who ask share queries
        for key in model.keys:
            for one in replicas:
                nursery.start_soon(check_key, model, key, one)
    for key in model.keys:
        key.tokens = model.dice.sample(key.tokens, min(3, len(key.tokens)))


async def check_key(model: Model, key: Key, one: Replica) -> None:
    """One key at one replica."""
    # tokens first: who signs in is asked for, and then known
    for token, secret in list(key.tokens):
        wanted = model.expected(key, secret, "operator", model.places[2])
        assert await one.call(token, "get_robot", id=model.machine) == wanted
        wanted = model.expected(key, secret, "owner", model.places[1])
        assert await one.call(token, "update_location", location_id=model.location, name="Test") == wanted
    for secret in key.secrets[-2:]:
        good = not key.deleted and secret == key.secrets[-1]
        with nullcontext() if good else pytest.raises(GRPCError, match="the credentials are wrong"):
            key.tokens.append((await one.sign_in(key.id, secret), secret))


@pytest.mark.parametrize("seed", range(3))
async def test_every_call_is_answered_by_what_the_last_change_says(cloud: MemoryCloud, machine: str, seed: int) -> None:
    model = Model(cloud, machine, random.Random(seed))
    async with replica(cloud, hears=True) as (near, _), replica(cloud, hears=False) as (far, _):
        for _ in range(15):
            model.owner()
            await model.dice.choice(model.steps)()
            await check(model, [near, far])


# ---- what asking costs


async def test_a_flood_of_unknown_keys_is_no_flood_of_queries(cloud: MemoryCloud) -> None:
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


async def test_while_the_database_is_away_those_count_that_were_known_last(cloud: MemoryCloud) -> None:
    async with replica(cloud, hears=False) as (far, store):
        made = await cloud.cloud.store.write(lambda sql: _operator(sql, cloud))
        store.away = True
        assert await far.sign_in(cloud.first.id, cloud.first.key)
        with pytest.raises(GRPCError):
            await far.sign_in(*made)
        store.away = False
        with trio.fail_after(LIMIT):
            assert await far.sign_in(*made)


def _operator(sql: Sql, cloud: MemoryCloud) -> tuple[str, str]:
    grant = Grant("operator", "organization", cloud.first.organization)
    return create_key(sql, cloud.first.organization, "guard", [grant], cloud.cloud.clock())


async def test_a_long_name_is_not_asked_for(cloud: MemoryCloud) -> None:
    async with replica(cloud, hears=True) as (near, store):
        before = store.reads
        with pytest.raises(GRPCError):
            await near.sign_in("x" * 10_000, "secret")
        assert store.reads == before


async def test_a_part_signs_in_with_a_secret_that_was_made_elsewhere_until_it_is_deleted(
    cloud: MemoryCloud, part: str
) -> None:
    async with replica(cloud, hears=False) as (far, _):
        made = await cloud.app("create_robot_part_secret", part_id=part)
        secrets = [one["secret"] for one in made["secrets"]]
        tokens = [await far.sign_in(part, one, PART_SECRET) for one in secrets]
        assert [await far.call(token, "get_robot_part", id=part) for token in tokens] == ["permission", "permission"]
        await cloud.app("delete_robot_part_secret", part_id=part, secret_id=made["secrets"][0]["id"])
        assert await far.call(tokens[0], "get_robot_part", id=part) == "unauthenticated"
        assert await far.call(tokens[1], "get_robot_part", id=part) == "permission"
        with pytest.raises(GRPCError):
            await far.sign_in(part, secrets[0], PART_SECRET)


# ---- what lasts


async def _deleted(cloud: MemoryCloud, key: str) -> None:
    await cloud.app("delete_key", id=key)


async def _rotated(cloud: MemoryCloud, key: str) -> None:
    await cloud.app("rotate_key", id=key)


async def _without_role(cloud: MemoryCloud, key: str) -> None:
    await cloud.app("add_role", authorization=_at(cloud, "location", await _empty(cloud), key))  # a key has one
    await cloud.app("remove_role", authorization=_at(cloud, "organization", cloud.first.organization, key))


async def _empty(cloud: MemoryCloud) -> str:
    made = await cloud.app("create_location", organization_id=cloud.first.organization, name="empty")
    return str(made["id"])


def _at(cloud: MemoryCloud, kind: str, subject: str, key: str = "") -> dict[str, str]:
    return {
        "authorization_type": "role",
        "authorization_id": f"{kind}_operator",
        "resource_type": kind,
        "resource_id": subject,
        "identity_id": key,
        "organization_id": cloud.first.organization,
        "identity_type": "api-key",
    }


CHANGES = {
    "deleted": (_deleted, ErrorKind.UNAUTHENTICATED),
    "rotated": (_rotated, ErrorKind.UNAUTHENTICATED),
    "without role": (_without_role, ErrorKind.NOT_FOUND),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_tail_ends_with_its_key(cloud: MemoryCloud, part: str, change: str) -> None:
    do, kind = CHANGES[change]
    key = await cloud.cloud.store.write(lambda sql: _operator(sql, cloud))
    async with replica(cloud, hears=True) as (near, _):
        client = near.client(await near.sign_in(*key))
        heard = trio.Event()
        ended: list[MachineError] = []

        async def tail() -> None:
            try:
                async for _ in client.stream(APP, "", "tail_robot_part_logs", id=part, errors_only=False):
                    heard.set()
            except MachineError as error:
                ended.append(error)

        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tail)
                while not heard.is_set():
                    entry = {"level": "info", "message": "hello", "time": cloud.cloud.clock()}
                    await cloud.client(part, PART_SECRET).call(ROBOT, "", "log", id=part, logs=[entry])
                    with trio.move_on_after(0.1):
                        await heard.wait()
                await cloud.app("rename_key", id=key[0], name="another")  # is no reason
                await do(cloud, key[0])
        assert [error.kind for error in ended] == [kind]


async def test_a_page_ends_when_its_key_was_deleted_before_it_listened(cloud: MemoryCloud, part: str) -> None:
    key = await cloud.cloud.store.write(lambda sql: _operator(sql, cloud))
    person = await signed_in(cloud, key)
    async with person.live("/live/machines", {"origin": f"http://{HOST}"}) as page:
        await cloud.app("delete_key", id=key[0])
        with trio.fail_after(LIMIT):
            message = await page.message()
            while message["type"] != "websocket.close":
                message = await page.message()
    assert message["code"] in (AGAIN, REFUSED)


async def _closed(machine: Machine) -> dict[str, Any]:
    while True:
        message: dict[str, Any] = await machine._page.message()
        if message["type"] == "websocket.close":
            return message


async def test_the_push_channel_ends_with_the_secret_and_says_why(cloud: MemoryCloud, part: str) -> None:
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            await machine.hears("document")
            both = (await cloud.app("create_robot_part_secret", part_id=part))["secrets"]
            await cloud.app("delete_robot_part_secret", part_id=part, secret_id=both[-1]["id"])
            message = await _closed(machine)
    assert message["code"] == REFUSED
    assert "rotated or deleted" in message["reason"]


async def test_the_push_channel_of_a_deleted_part_says_that_it_is_gone(cloud: MemoryCloud, machine: str) -> None:
    subject = await cloud.app("new_robot_part", robot_id=machine, part_name="arm")
    with trio.fail_after(LIMIT):
        async with connected(cloud, subject) as channel:
            await channel.hears("document")
            await cloud.app("delete_robot_part", part_id=subject)
            message = await _closed(channel)
    assert message["code"] in (GONE, REFUSED)  # whichever task notices first


async def test_the_push_channel_outlives_an_outage_of_the_database(cloud: MemoryCloud, part: str) -> None:
    store = Counted(cloud.cloud.store)
    cloud.cloud = replace(cloud.cloud, store=store)
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            assert await machine.hears("document") == {}
            store.away = True
            cloud.cloud.events.tell_all()  # as a listener does whose connection is back
            await store.refused.wait()
            store.away = False
            await cloud.app("update_robot_part", id=part, name="", robot_config={"components": []})
            assert await machine.hears("document") == {"components": []}


async def test_a_machine_is_told_in_http_why_it_is_not_let_in(cloud: MemoryCloud, part: str) -> None:
    store = Counted(cloud.cloud.store)
    token = await machine_token(cloud, part)
    cloud.cloud = replace(cloud.cloud, store=store)
    for away, subject, status in ((False, "nothing", 404), (True, part, 503)):
        store.away = away
        headers = {"authorization": f"Bearer {token}"}
        async with browser(cloud).live(f"/machine/v1/follow?part={subject}", headers) as page:
            assert (page.first["type"], page.first["status"]) == ("websocket.http.response.start", status)
            assert (await page.message())["type"] == "websocket.http.response.body"


# ---- how much one key has open


async def test_one_key_has_so_many_streams_open_and_no_more(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.target.STREAMS", 2)
    monkeypatch.setattr("cloud.web.live.STREAMS", 3)
    ended: list[MachineError] = []
    person = await signed_in(cloud)

    async def tail() -> None:
        try:
            async for _ in cloud.client().stream(APP, "", "tail_robot_part_logs", id=part, errors_only=False):
                raise AssertionError
        except MachineError as error:
            ended.append(error)

    headers = {"origin": f"http://{HOST}"}
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(tail)
            while not ended:
                await trio.testing.wait_all_tasks_blocked(0.01)
            assert [error.kind for error in ended] == [ErrorKind.EXHAUSTED]
            assert "2 streams of the key" in str(ended[0])
            async with person.live("/live/machines", headers) as page:
                await page.patch()
                async with person.live("/live/machines", headers) as another:
                    message = await another.message()
                    assert message["type"] == "websocket.close"
                    assert "3 streams" in message["reason"]
            other = await cloud.cloud.store.write(lambda sql: _operator(sql, cloud))
            async with (await signed_in(cloud, other)).live("/live/machines", headers) as page:
                await page.patch()
            nursery.cancel_scope.cancel()
    assert not cloud.cloud.openings._open


async def test_a_part_is_followed_by_so_many_and_no_more(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.web.push.FOLLOWERS", 1)
    headers = {"authorization": f"Bearer {await machine_token(cloud, part)}"}
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            await machine.hears("document")
            async with browser(cloud).live(f"/machine/v1/follow?part={part}", headers) as page:
                assert page.first["status"] == 429
                await page.message()
        async with connected(cloud, part) as machine:
            await machine.hears("document")


# ---- the last owner


@pytest.mark.parametrize("way", ["delete_key", "remove_role", "change_role", "add_role"])
async def test_an_organization_keeps_an_owner(cloud: MemoryCloud, way: str) -> None:
    own = {**_at(cloud, "organization", cloud.first.organization, cloud.first.id)}
    owner, operator = {**own, "authorization_id": "organization_owner"}, own
    await cloud.app("add_role", authorization=_at(cloud, "location", cloud.first.location, cloud.first.id))
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
    assert "organization_owner" in [one["authorization_id"] for one in kept[0]["authorizations"]]
    await cloud.app("create_key", authorizations=[{**owner, "identity_id": ""}], name="second")
    await cloud.app(way, **arguments)

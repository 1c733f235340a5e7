"""Signalling: offers of clients reach the machine that answers, and only callers with a role may make them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import pytest
import trio
import trio.testing
from grpclib.const import Status

from cloud.domain.machines import signalling
from cloud.domain.machines.hosts import MachineHosts
from cloud.domain.machines.ice import IceServers
from cloud.domain.machines.machines import note_seen
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key, delete_key
from cloud.server.memory import MemoryCloud, open_cloud
from cloud.services.agents.agent_requests import end_waiting
from cloud.services.machines import signalling as service
from cloud.store.events import Events
from cloud.store.postgres import PostgresStore
from cloud.values.limits import CALLER_OFFERS, SDP, SIGNAL, SIGNALS
from rpc.access.credential_types import API_KEY, LOCATION_SECRET, PART_SECRET
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from rpc.api.messages import signaling
from rpc.carrier import Identity
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import BOTH, Clock

SIGNALING: Final = "proto.rpc.webrtc.v1.SignalingService"
LIMIT: Final = 20.0  # seconds within which a step that takes milliseconds must be done
ICE: Final = IceServers(("stun:stun.example:3478", "turn:turn.example:3478?transport=udp"), "shared")


@dataclass
class Rendezvous:
    """A cloud with an online machine."""

    cloud: MemoryCloud
    part: str

    def client(self, entity: str = "", kind: str = API_KEY, host: str = "", **metadata: str) -> ApiClient:
        """Return a client that names the machine; by default the owner's."""
        identity = Identity(entity or self.cloud.first.id, kind)
        headers = {"rpc-host": host or self.part, **{key.replace("_", "-"): value for key, value in metadata.items()}}
        return ApiClient(MemoryChannel(self.cloud.router, identity=identity), metadata=headers)

    def machine(self, **metadata: str) -> ApiClient:
        return self.client(self.part, PART_SECRET, **metadata)


@pytest.fixture
async def rendezvous(cloud: MemoryCloud, part: str) -> Rendezvous:
    named = MemoryCloud(replace(cloud.cloud, hosts=MachineHosts("machines.example"), ice=ICE), cloud.first)
    await report(named, part, {"webrtc": True})
    return Rendezvous(named, part)


async def report(cloud: MemoryCloud, part: str, reported: dict[str, Any]) -> None:
    await cloud.cloud.store.write(lambda sql: note_seen(sql, part, cloud.cloud.clock(), reported))


class Stream:
    """A streaming call that a separate task reads, because its generator contains a nursery."""

    def __init__(self, client: ApiClient, method: str, **arguments: Any) -> None:
        self._client = client
        self._method = method
        self._arguments = arguments
        self._send, self._replies = trio.open_memory_channel[Any](100)
        self.error: MachineError | None = None

    async def run(self) -> None:
        with self._send:
            try:
                async with aclosing(self._client.stream(SIGNALING, "", self._method, **self._arguments)) as replies:
                    async for reply in replies:
                        await self._send.send(reply)
            except MachineError as error:
                self.error = error

    async def next(self) -> dict[str, Any]:
        """Return the next reply; raise the error of the call, or trio.EndOfChannel after its end."""
        with trio.fail_after(LIMIT):
            try:
                reply: dict[str, Any] = await self._replies.receive()
            except trio.EndOfChannel:
                if self.error is not None:
                    raise self.error from None
                raise
        return reply

    async def rest(self) -> list[dict[str, Any]]:
        """Return the remaining replies; raise the error of the call."""
        replies = []
        while True:
            try:
                replies.append(await self.next())
            except trio.EndOfChannel:
                return replies


class Answerer(Stream):
    """The machine's side of one call of Answer."""

    def __init__(self, client: ApiClient) -> None:
        self._answers, requests = trio.open_memory_channel[Any](100)
        super().__init__(client, "answer", answers=requests)
        self.uuid = ""

    async def next(self) -> dict[str, Any]:
        received = await super().next()
        self.uuid = received["uuid"] or self.uuid
        return received

    async def send(self, **stage: Any) -> None:
        await self._answers.send(signaling().AnswerResponse(uuid=self.uuid, **stage))


@asynccontextmanager
async def answering(client: ApiClient) -> AsyncIterator[Answerer]:
    answerer = Answerer(client)
    async with running(answerer):
        yield answerer


@asynccontextmanager
async def running(*streams: Stream) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for stream in streams:
            nursery.start_soon(stream.run)
        yield
        nursery.cancel_scope.cancel()


def candidate(text: str) -> Any:
    return {"candidate": signaling().ICECandidate(candidate=text, sdp_mid="0", sdpm_line_index=0)}


async def test_an_offer_and_all_signals_reach_the_other_end(rendezvous: Rendezvous, clock: Clock) -> None:
    client = rendezvous.client(host=f"rover-{rendezvous.part}.machines.example:8090")
    machine, call = Answerer(rendezvous.machine()), Stream(client, "call", sdp="offer")
    async with running(machine, call):
        offer = await machine.next()
        assert offer["init"]["sdp"] == "offer"
        assert offer["init"]["caller_auth_entity"] == rendezvous.cloud.first.id
        assert offer["init"]["caller_auth_metadata"] == {"type": API_KEY}
        assert offer["init"]["deadline"] - clock() < signalling.TIME
        assert not offer["init"]["optional_config"]["disable_trickle"]
        uuid = offer["uuid"]
        for number in range(3):
            update = {"candidate": f"c{number}", "sdp_mid": "0", "sdpm_line_index": 0}
            await client.call(SIGNALING, "", "call_update", uuid=uuid, candidate=update)
            assert (await machine.next())["update"]["candidate"]["candidate"] == f"c{number}"
        await client.call(SIGNALING, "", "call_update", uuid=uuid, done=True)
        assert "done" in await machine.next()
        await machine.send(init=signaling().AnswerResponseInitStage(sdp="answer"))
        for number in range(3):
            await machine.send(update=signaling().AnswerResponseUpdateStage(**candidate(f"m{number}")))
        await machine.send(done=signaling().AnswerResponseDoneStage())
        replies = await call.rest()
        assert [reply["uuid"] for reply in replies] == [uuid] * 4
        assert replies[0]["init"] == {"sdp": "answer"}
        assert [reply["update"]["candidate"]["candidate"] for reply in replies[1:]] == ["m0", "m1", "m2"]
        assert replies[1]["update"]["candidate"]["sdpm_line_index"] == 0
        assert await machine.rest() == []
    await client.call(SIGNALING, "", "call_update", uuid=uuid, done=True)  # official clients send it late
    assert await rendezvous.cloud.cloud.store.read(
        lambda sql: signalling.received(sql, uuid, signalling.End.MACHINE, 0)[3:]
    ) == [signalling.PeerSignal(3, {"done": {}})]
    clock.now += signalling.TIME
    with pytest.raises(MachineError, match="no connection attempt") as caught:
        await client.call(SIGNALING, "", "call_update", uuid=uuid, done=True)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_caller_and_machine_may_be_at_different_replicas(clock: Clock, postgresql: Any) -> None:
    url = postgresql.fresh()
    events = Events()
    async with open_cloud(clock, url) as first, PostgresStore(url, events).opened() as store:
        robot = await first.app("new_robot", name="rover", location=first.first.location)
        part = (await first.app("get_robot_parts", robot_id=robot))[0]["id"]
        await report(first, part, {"webrtc": True})
        other = MemoryCloud(replace(first.cloud, store=store, events=events), first.first)
        client, machine = Rendezvous(first, part).client(), Answerer(Rendezvous(other, part).machine())
        call = Stream(client, "call", sdp="offer")
        async with running(machine):
            await trio.testing.wait_all_tasks_blocked(0.05)  # the machine waits at the other replica
            async with running(call):
                offer = await machine.next()
                await client.call(SIGNALING, "", "call_update", uuid=offer["uuid"], candidate={"candidate": "c"})
                assert (await machine.next())["update"]["candidate"]["candidate"] == "c"
                await machine.send(init=signaling().AnswerResponseInitStage(sdp="answer"))
                assert (await call.next())["init"]["sdp"] == "answer"


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
async def test_each_offer_is_answered_once(rendezvous: Rendezvous) -> None:
    taken: list[str] = []

    async def answer() -> None:
        async with answering(rendezvous.machine()) as machine:
            taken.append((await machine.next())["init"]["sdp"])
            await machine.send(init=signaling().AnswerResponseInitStage(sdp="answer"))
            await machine.send(done=signaling().AnswerResponseDoneStage())
            assert await machine.rest() == []

    async def call(number: int) -> None:
        assert [reply["init"]["sdp"] for reply in await read_all(rendezvous.client(), str(number))] == ["answer"]

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(answer)
                nursery.start_soon(call, number)
    assert sorted(taken) == ["0", "1", "2", "3", "4"]


async def test_an_error_of_the_machine_ends_the_call(rendezvous: Rendezvous) -> None:
    call = Stream(rendezvous.client(), "call", sdp="offer")
    async with answering(rendezvous.machine()) as machine, running(call):
        await machine.next()
        await machine.send(error={"status": {"code": 8, "message": "too many connections" + "!" * 1000}})
        with pytest.raises(MachineError, match="too many connections") as caught:
            await call.next()
    assert caught.value.kind is ErrorKind.EXHAUSTED
    assert len(caught.value.message) <= 500


async def read_all(client: ApiClient, sdp: str = "offer") -> list[Any]:
    with trio.fail_after(LIMIT):
        async with aclosing(client.stream(SIGNALING, "", "call", sdp=sdp)) as replies:
            return [reply async for reply in replies]


async def test_a_machine_that_does_not_answer(rendezvous: Rendezvous, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signalling, "TIME", timedelta(seconds=0.2))
    with pytest.raises(MachineError, match=r"rover-main did not answer within 0\.2 s"):
        await read_all(rendezvous.client())


async def test_heartbeats_while_a_machine_waits(rendezvous: Rendezvous, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "HEARTBEAT", 0.01)
    async with answering(rendezvous.machine(heartbeats_allowed="true")) as machine:
        for _ in range(3):
            assert "heartbeat" in await machine.next()


async def test_waiting_calls_end_when_the_cloud_stops(rendezvous: Rendezvous, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "HEARTBEAT", 0.01)
    async with answering(rendezvous.machine(heartbeats_allowed="true")) as machine:
        assert "heartbeat" in await machine.next()  # so it waits for offers
        monkeypatch.setattr(service, "HEARTBEAT", 1000.0)
        await trio.testing.wait_all_tasks_blocked(0.05)
        with trio.CancelScope() as stopping:
            stopping.cancel()
            await end_waiting(rendezvous.cloud.cloud)
        assert all("heartbeat" in reply for reply in await machine.rest())


async def test_calls_end_when_the_cloud_stops(rendezvous: Rendezvous) -> None:
    call = Stream(rendezvous.client(), "call", sdp="offer")
    async with answering(rendezvous.machine()) as machine, running(call):
        await machine.next()
        await machine.send(init=signaling().AnswerResponseInitStage(sdp="answer"))
        assert "init" in await call.next()
        with trio.CancelScope() as stopping:
            stopping.cancel()
            await end_waiting(rendezvous.cloud.cloud)
        with pytest.raises(MachineError, match="the cloud stops") as caught:
            await call.next()
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        await machine.rest()


async def test_a_caller_that_leaves_ends_the_attempt_at_the_machine(rendezvous: Rendezvous) -> None:
    async with answering(rendezvous.machine()) as machine:
        async with running(Stream(rendezvous.client(), "call", sdp="offer")):
            await machine.next()
            await machine.send(init=signaling().AnswerResponseInitStage(sdp="answer"))
        (last,) = await machine.rest()
        assert last["error"]["status"]["code"] == Status.ABORTED.value


# ---- who may call


async def refused(client: ApiClient, method: str = "optional_web_rtc_config") -> ErrorKind:
    call = Answerer(client) if method == "answer" else Stream(client, "call", sdp="offer")
    async with running(*([] if method == "optional_web_rtc_config" else [call])):
        try:
            if method == "optional_web_rtc_config":
                await client.call(SIGNALING, "", method)
            else:
                await call.next()
        except MachineError as error:
            return error.kind
    pytest.fail(f"{method} was not refused")


async def test_unknown_hosts_lead_clients_to_a_direct_call(rendezvous: Rendezvous, cloud: MemoryCloud) -> None:
    stranger = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Stranger", cloud.cloud.clock()))
    missing = "00000000-0000-4000-8000-000000000000"
    for client in (
        rendezvous.client(host="127.0.0.1:8090"),
        rendezvous.client(host=missing),
        rendezvous.client(host=f"rover-{rendezvous.part}.other.example"),
        rendezvous.client(stranger.id),
    ):
        for method in ("optional_web_rtc_config", "call"):
            assert await refused(client, method) is ErrorKind.INVALID
    with pytest.raises(MachineError, match=r"^host not preconfigured"):
        await rendezvous.client(host="x").call(SIGNALING, "", "optional_web_rtc_config")
    bare = ApiClient(MemoryChannel(rendezvous.cloud.router, identity=Identity(cloud.first.id, API_KEY)))
    assert await refused(bare) is ErrorKind.INVALID


async def test_a_machine_without_webrtc_or_connection(rendezvous: Rendezvous, clock: Clock) -> None:
    await report(rendezvous.cloud, rendezvous.part, {"webrtc": False})
    assert await refused(rendezvous.client(), "call") is ErrorKind.INVALID
    await report(rendezvous.cloud, rendezvous.part, {"webrtc": True})
    clock.now += timedelta(hours=1)
    assert await refused(rendezvous.client(), "call") is ErrorKind.UNAVAILABLE


async def test_a_machine_answers_for_itself_only(rendezvous: Rendezvous, cloud: MemoryCloud) -> None:
    other = await cloud.app("new_robot", name="other", location=cloud.first.location)
    other_part = (await cloud.app("get_robot_parts", robot_id=other))[0]["id"]
    assert await refused(rendezvous.client(other_part, PART_SECRET), "answer") is ErrorKind.INVALID
    assert await refused(rendezvous.client(other_part, PART_SECRET), "call") is ErrorKind.INVALID
    operator = await cloud.cloud.store.write(
        lambda sql: create_key(
            sql, cloud.first.organization, "op", [Grant("operator", "robot", other)], cloud.cloud.clock()
        )
    )
    assert await refused(rendezvous.client(operator[0]), "call") is ErrorKind.INVALID
    grant = Grant("operator", "organization", cloud.first.organization)
    guard = await cloud.cloud.store.write(
        lambda sql: create_key(sql, cloud.first.organization, "guard", [grant], cloud.cloud.clock())
    )
    assert await refused(rendezvous.client(guard[0]), "answer") is ErrorKind.PERMISSION
    await rendezvous.client(guard[0]).call(SIGNALING, "", "optional_web_rtc_config")


async def test_a_secret_of_the_location_is_enough_for_a_client(rendezvous: Rendezvous, cloud: MemoryCloud) -> None:
    """Machines accept it from clients, too. The secret of the part is for the machine itself."""
    await cloud.app("create_location_secret", location_id=cloud.first.location)
    client = rendezvous.client(rendezvous.part, LOCATION_SECRET)
    call = Stream(client, "call", sdp="offer")
    async with answering(rendezvous.machine()) as machine, running(call):
        init = (await machine.next())["init"]
        assert (init["caller_auth_entity"], init["caller_auth_metadata"]) == (
            rendezvous.part,
            {"type": LOCATION_SECRET},
        )
        await client.call(SIGNALING, "", "call_update", uuid=machine.uuid, done=True)
        assert "done" in await machine.next()
    assert await refused(rendezvous.machine(), "call") is ErrorKind.PERMISSION
    assert await refused(client, "answer") is ErrorKind.PERMISSION


async def test_signals_of_others_are_refused(rendezvous: Rendezvous, cloud: MemoryCloud) -> None:
    grant = Grant("operator", "organization", cloud.first.organization)
    other, _ = await cloud.cloud.store.write(
        lambda sql: create_key(sql, cloud.first.organization, "op", [grant], cloud.cloud.clock())
    )
    async with answering(rendezvous.machine()) as machine, running(Stream(rendezvous.client(), "call", sdp="x")):
        offer = await machine.next()
        for client in (rendezvous.client(other), rendezvous.machine()):
            with pytest.raises(MachineError) as caught:
                await client.call(SIGNALING, "", "call_update", uuid=offer["uuid"], done=True)
            assert caught.value.kind is ErrorKind.NOT_FOUND
        await machine.send(done=signaling().AnswerResponseDoneStage())


async def test_a_call_ends_when_its_key_is_deleted(rendezvous: Rendezvous, cloud: MemoryCloud) -> None:
    grant = Grant("operator", "organization", cloud.first.organization)
    key, _ = await cloud.cloud.store.write(
        lambda sql: create_key(sql, cloud.first.organization, "op", [grant], cloud.cloud.clock())
    )
    call = Stream(rendezvous.client(key), "call", sdp="offer")
    async with answering(rendezvous.machine()) as machine, running(call):
        await machine.next()
        await cloud.cloud.store.write(lambda sql: delete_key(sql, key))
        with pytest.raises(MachineError) as caught:
            await call.next()
    assert caught.value.kind in (ErrorKind.UNAUTHENTICATED, ErrorKind.NOT_FOUND)


# ---- limits


async def test_offers_and_signals_are_limited(rendezvous: Rendezvous, clock: Clock) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(CALLER_OFFERS.value):
            nursery.start_soon(read_quietly, rendezvous.client())
        with trio.fail_after(LIMIT):
            while await count(rendezvous) < CALLER_OFFERS.value:
                await trio.testing.wait_all_tasks_blocked(0.01)
        assert await refused(rendezvous.client(), "call") is ErrorKind.EXHAUSTED
        nursery.cancel_scope.cancel()
    assert await count(rendezvous, "ended = 0") == 0
    with pytest.raises(MachineError, match="session_description"):
        await read_all(rendezvous.client(), "x" * (SDP.value + 1))


async def read_quietly(client: ApiClient) -> None:
    async with aclosing(client.stream(SIGNALING, "", "call", sdp="x")) as replies:
        async for _ in replies:
            pass


async def count(rendezvous: Rendezvous, condition: str = "1 = 1") -> int:
    rows = await rendezvous.cloud.cloud.store.read(lambda sql: sql.rows(f"SELECT id FROM offers WHERE {condition}"))
    return len(rows)


async def test_floods_of_signals_are_refused(rendezvous: Rendezvous) -> None:
    client = rendezvous.client()
    async with answering(rendezvous.machine()) as machine, running(Stream(client, "call", sdp="x")):
        uuid = (await machine.next())["uuid"]
        with pytest.raises(MachineError, match="`signal`"):
            await client.call(SIGNALING, "", "call_update", uuid=uuid, candidate={"candidate": "x" * SIGNAL.value})
        with pytest.raises(MachineError, match="the update is empty"):
            await client.call(SIGNALING, "", "call_update", uuid=uuid)
        for _ in range(SIGNALS.value):
            await client.call(SIGNALING, "", "call_update", uuid=uuid, candidate={"candidate": "x"})
        with pytest.raises(MachineError, match="`signals`"):
            await client.call(SIGNALING, "", "call_update", uuid=uuid, candidate={"candidate": "x"})


@BOTH
async def test_expired_offers_are_deleted(rendezvous: Rendezvous, clock: Clock) -> None:
    store = rendezvous.cloud.cloud.store
    async with answering(rendezvous.machine()) as machine, running(Stream(rendezvous.client(), "call", sdp="x")):
        await machine.next()
        await machine.send(init=signaling().AnswerResponseInitStage(sdp="answer"))
    assert await store.write(lambda sql: signalling.expire(sql, clock())) == 0
    clock.now += signalling.TIME
    assert await store.write(lambda sql: signalling.expire(sql, clock())) == 1
    assert await store.read(lambda sql: sql.rows("SELECT number FROM signals")) == []


async def test_a_part_with_offers_can_be_deleted(rendezvous: Rendezvous, cloud: MemoryCloud) -> None:
    extra = await cloud.app(
        "new_robot_part",
        robot_id=(await cloud.app("get_robot_part", id=rendezvous.part))["part"]["robot"],
        part_name="second",
    )
    await report(rendezvous.cloud, extra, {"webrtc": True})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_quietly, rendezvous.client(host=extra))
        with trio.fail_after(LIMIT):
            while await count(rendezvous) == 0:
                await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    await cloud.app("delete_robot_part", part_id=extra)
    assert await count(rendezvous) == 0


# ---- servers


async def test_servers_are_offered_with_credentials_for_a_limited_time(rendezvous: Rendezvous, clock: Clock) -> None:
    config = await rendezvous.client().call(SIGNALING, "", "optional_web_rtc_config")
    stun, turn = config["additional_ice_servers"]
    assert stun["urls"] == ["stun:stun.example:3478"]
    assert "credential" not in stun or not stun["credential"]
    assert turn["urls"] == ["turn:turn.example:3478?transport=udp"]
    expiry, _, user = turn["username"].partition(":")
    assert user == rendezvous.cloud.first.id
    assert timedelta(hours=11) < timedelta(seconds=int(expiry) - clock().timestamp()) <= timedelta(hours=12)

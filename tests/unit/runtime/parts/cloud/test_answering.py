"""Offers through the cloud: who is connected, what is refused, and what ends a connection. The engine is simulated."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from cloud.domain.machines.ice import IceServers
from cloud.domain.machines.machines import note_seen
from cloud.server.memory import MemoryCloud, open_cloud
from rpc.access.credential_types import API_KEY, LOCATION_SECRET, PART_SECRET
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from rpc.call import ServerCore
from rpc.carrier import Identity
from rpc.datachannel import clients
from rpc.datachannel.client import CallChannel
from rpc.datachannel.clients import Clients
from rpc.peers.channel import MessageChannel
from rpc.peers.connection import ConnectionBase
from rpc.peers.dial import dialled
from rpc.peers.memory import Pair, memory_channels
from rpc.peers.port import Description, IceCandidate, PathReport, PeerChannel, PeerOptions, PeerState
from rpc.peers.signals import decode_description, encode_description
from runtime.parts.cloud import answering
from runtime.parts.cloud.answering import Answering
from runtime.parts.cloud.part import _keys
from schema.document.machine import decode_document
from schema.errors import ErrorKind, MachineError
from tests.unit.rpc.echo import EchoService, Stub
from uplink.dial import CloudAddress

NO_PEER: Any = None  # of a channel that never opens
SIGNALING: Final = "proto.rpc.webrtc.v1.SignalingService"
LIMIT: Final = 20.0  # seconds within which a step that takes milliseconds must be done
OFFER: Final = encode_description(Description("offer", "v=0"))
ICE: Final = IceServers(("turn:turn.example",), "shared")


class FakePeer(ConnectionBase):
    """A connection whose channel "data" is a pair in memory."""

    def __init__(self, options: PeerOptions, pair: Pair) -> None:
        super().__init__()
        self.options = options
        self.pair = pair
        self.offered: Description | None = None
        self.remote: list[IceCandidate] = []
        self.opens = trio.Event()
        self.opens.set()

    def channel(self, label: str, number: int) -> PeerChannel:
        channel: Any = self.pair[1]
        channel.wait_open = self.opens.wait
        return self.pair[1]

    async def offer(self) -> Description:
        self.gathered(IceCandidate("candidate:9", "0", 0))
        self.gathered(None)
        return Description("offer", "v=0")

    async def answer(self) -> Description:
        for text in ("candidate:1", "candidate:2"):
            self.gathered(IceCandidate(text, "0", 0))
        self.gathered(None)
        return Description("answer", "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n")

    async def accept(self, description: Description) -> None:
        if description.sdp == "bad":
            raise MachineError("the session description cannot be used", kind=ErrorKind.INVALID)
        self.offered = description
        self.entered(PeerState.CONNECTING)

    async def add_candidate(self, candidate: IceCandidate) -> None:
        self.remote.append(candidate)
        self.opens.set()

    async def report(self) -> PathReport:
        self.entered(PeerState.CONNECTED)  # with libwebrtc too, channels may open before
        return PathReport("host", "prflx", "udp", "192.0.2.7")

    def close(self) -> None:
        self.entered(PeerState.CLOSED)


class CallerPeer(FakePeer):
    """The client's end."""

    def channel(self, label: str, number: int) -> PeerChannel:
        self.opens = trio.Event()
        channel: Any = self.pair[0]
        channel.wait_open = self.opens.wait
        return self.pair[0]

    async def accept(self, description: Description) -> None:
        await super().accept(description)
        self.opens.set()


class CallerEngine:
    """The client's engine, whose connections are the other ends of those of the machine's."""

    name = "fake"

    def __init__(self, pairs: list[Pair]) -> None:
        self._pairs = iter(pairs)
        self.peers: list[CallerPeer] = []

    def connect(self, options: PeerOptions) -> CallerPeer:
        self.peers.append(CallerPeer(options, next(self._pairs)))
        return self.peers[-1]


class FakeEngine:
    name = "fake"

    def __init__(self, pairs: list[Pair]) -> None:
        self._pairs = pairs
        self.peers: list[FakePeer] = []
        self.connected = trio.Event()
        self.patient = False  # channels open when the first remote candidate arrives

    def connect(self, options: PeerOptions) -> FakePeer:
        peer = FakePeer(options, self._pairs[len(self.peers)])
        if self.patient:
            peer.opens = trio.Event()
        self.peers.append(peer)
        self.connected.set()
        return peer


class Rig:
    """A machine in memory that answers offers, and clients of its cloud."""

    def __init__(
        self, cloud: MemoryCloud, part: str, answering: Answering, engine: FakeEngine, pairs: list[Pair]
    ) -> None:
        self.cloud = cloud
        self.part = part
        self.answering = answering
        self.engine = engine
        self.pairs = pairs
        self.service = EchoService()

    def signalling(self) -> MemoryChannel:
        return MemoryChannel(self.cloud.router, identity=Identity(self.cloud.first.id, API_KEY))

    def client(self) -> ApiClient:
        return ApiClient(self.signalling(), metadata={"rpc-host": self.part})

    async def offer(self, sdp: str = OFFER, **arguments: Any) -> list[dict[str, Any]]:
        """Offer a connection; return all replies, or raise the error."""
        with trio.fail_after(LIMIT):
            async with aclosing(self.client().stream(SIGNALING, "", "call", sdp=sdp, **arguments)) as replies:
                return [reply async for reply in replies]

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Stub]:
        """Connect, and yield a client of the machine's calls."""
        await self.offer()
        async with CallChannel(self.pairs[len(self.engine.peers) - 1][0]) as channel:
            yield Stub(channel)


@asynccontextmanager
async def rig(monkeypatch: pytest.MonkeyPatch, pair_count: int = 4) -> AsyncIterator[Rig]:
    async with trio.open_nursery() as nursery, open_cloud() as opened:
        cloud = MemoryCloud(replace(opened.cloud, ice=ICE), opened.first)
        robot = await cloud.app("new_robot", name="rover", location=cloud.first.location)
        part = (await cloud.app("get_robot_parts", robot_id=robot))[0]["id"]
        await cloud.cloud.store.write(lambda sql: note_seen(sql, part, cloud.cloud.clock(), {"webrtc": True}))
        pairs: list[Pair] = [await nursery.start(_channels) for _ in range(pair_count)]
        engine = FakeEngine(pairs)

        @asynccontextmanager
        async def open_engine(run_blocking: Any) -> AsyncIterator[FakeEngine]:
            yield engine

        monkeypatch.setattr(clients, "open_engine", open_engine)
        machine: Any = MemoryChannel(cloud.router, identity=Identity(part, PART_SECRET))
        address = CloudAddress("http://cloud.test", part, part, PART_SECRET, "secret", opened=machine)
        core = ServerCore({})
        connections = Clients(_unused, machine_media)
        machine_rig = Rig(cloud, part, Answering(address, core, connections), engine, pairs)
        core.router = machine_rig.service.__mapping__()
        machine_rig.answering.configure([(API_KEY, cloud.first.id)])
        await nursery.start(_run, connections)
        await nursery.start(_run, machine_rig.answering)
        yield machine_rig
        nursery.cancel_scope.cancel()


async def _run(node: Any, *, task_status: trio.TaskStatus[None]) -> None:
    await node.run(task_status=task_status)


async def _channels(*, task_status: trio.TaskStatus[Pair]) -> None:
    async with memory_channels() as pair:
        task_status.started(pair)
        await trio.sleep_forever()


@asynccontextmanager
async def machine_media(peer: Any, negotiation: Any) -> AsyncIterator[str]:
    yield "the media of the connection"


async def _unused(function: Callable[[], Any]) -> Any:
    raise NotImplementedError


async def test_a_client_is_connected_and_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(monkeypatch) as machine:
        machine.engine.patient = True
        replies: list[dict[str, Any]] = []
        client, candidate = machine.client(), {"candidate": "candidate:9", "sdp_mid": "0", "sdpm_line_index": 0}
        with trio.fail_after(LIMIT):
            async with aclosing(client.stream(SIGNALING, "", "call", sdp=OFFER)) as stream:
                async for reply in stream:
                    replies.append(reply)
                    if len(replies) == 3:  # the answer and both candidates
                        await client.call(SIGNALING, "", "call_update", uuid=reply["uuid"], candidate=candidate)
        first, *updates = replies
        assert decode_description(first["init"]["sdp"]).kind == "answer"
        assert [update["update"]["candidate"]["candidate"] for update in updates] == ["candidate:1", "candidate:2"]
        (peer,) = machine.engine.peers
        assert peer.remote == [IceCandidate("candidate:9", "0", 0)]
        assert peer.offered == Description("offer", "v=0")
        (server,) = peer.options.servers
        assert server.urls == ("turn:turn.example",)
        assert server.username.endswith(f":{machine.part}")
        async with CallChannel(machine.pairs[0][0]) as channel:
            assert (await Stub(channel).Echo(Request(host="x"))).valid_host == "x"
        (call,) = machine.service.seen
        assert call.identity == Identity(machine.cloud.first.id, API_KEY)
        assert call.peer.address == ("192.0.2.7", 0)
        assert call.peer.media == "the media of the connection"
        assert not call.peer.local


async def test_without_trickle_the_answer_contains_all_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(monkeypatch) as machine:
        (reply,) = await machine.offer(disable_trickle=True)
        sdp = decode_description(reply["init"]["sdp"]).sdp
        assert sdp.endswith("a=candidate:1\r\na=candidate:2\r\na=end-of-candidates\r\n")


async def test_several_clients_are_connected_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "MAX_ATTEMPTS", 2)
    async with rig(monkeypatch) as machine, trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(machine.offer)
    assert len(machine.engine.peers) == 4


@pytest.mark.parametrize("sdp", ["%", encode_description(Description("offer", "bad"))])
async def test_an_unusable_offer_is_refused(sdp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(monkeypatch) as machine:
        with pytest.raises(MachineError, match="session description") as caught:
            await machine.offer(sdp)
        assert caught.value.kind is ErrorKind.INVALID
        assert [peer.state for peer in machine.engine.peers] == [PeerState.CLOSED]
        await machine.offer()


async def test_a_key_that_the_machine_does_not_accept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "KEY_LIMIT", 0.01)
    async with rig(monkeypatch) as machine:
        machine.answering.configure([("other type", machine.cloud.first.id)])
        with pytest.raises(MachineError, match="does not accept the key") as caught:
            await machine.offer()
        assert caught.value.kind is ErrorKind.PERMISSION
        assert machine.engine.peers == []


async def test_a_new_key_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(monkeypatch) as machine:
        machine.answering.configure([])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(machine.offer)
            await trio.sleep(0.05)
            machine.answering.configure([(API_KEY, machine.cloud.first.id)])
        assert len(machine.engine.peers) == 1


async def test_a_deleted_key_ends_the_calls_of_its_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(monkeypatch) as machine, machine.connected() as stub, trio.open_nursery() as nursery:

        async def hang() -> None:
            with pytest.raises((GRPCError, StreamTerminatedError)), trio.fail_after(LIMIT):
                await stub.Hang(Request())

        nursery.start_soon(hang)
        await machine.service.started.wait()
        machine.answering.configure([(API_KEY, machine.cloud.first.id), (API_KEY, "another")])
        assert not machine.service.cancelled.is_set()
        machine.answering.configure([(API_KEY, "another")])
        with trio.fail_after(LIMIT):
            await machine.service.cancelled.wait()
            await machine.engine.peers[0].wait_state(PeerState.CLOSED)


@pytest.mark.parametrize(
    ("states", "ends"),
    [
        ((PeerState.FAILED,), True),
        ((PeerState.DISCONNECTED,), True),
        ((PeerState.DISCONNECTED, PeerState.CONNECTED), False),
    ],
)
async def test_a_lost_connection_ends_its_calls(
    states: tuple[PeerState, ...], ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "RECOVERY", 0.05)
    async with rig(monkeypatch) as machine, machine.connected() as stub, trio.open_nursery() as nursery:

        async def hang() -> None:
            with pytest.raises(GRPCError) as caught:
                await stub.Hang(Request())
            assert caught.value.status is Status.UNAVAILABLE

        nursery.start_soon(hang)
        await machine.service.started.wait()
        for state in states:
            machine.engine.peers[0].entered(state)
            await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.2 if not ends else LIMIT):
            await machine.service.cancelled.wait()
        assert machine.service.cancelled.is_set() is ends
        nursery.cancel_scope.cancel()


async def test_connections_are_limited_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MAX_CONNECTIONS", 1)
    async with rig(monkeypatch) as machine:
        async with machine.connected() as stub:
            assert (await stub.Echo(Request(host="x"))).valid_host == "x"
            with pytest.raises(MachineError, match="1 clients are connected") as caught:
                await machine.offer()
            assert caught.value.kind is ErrorKind.EXHAUSTED
        with trio.fail_after(LIMIT):
            await machine.engine.peers[0].wait_state(PeerState.CLOSED)
        await machine.offer()


async def test_attempts_of_a_caller_are_limited_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MAX_CALLER_ATTEMPTS", 1)
    async with rig(monkeypatch) as machine, trio.open_nursery() as nursery:
        machine.engine.patient = True
        nursery.start_soon(machine.offer)  # is not connected until the first candidate arrives
        with trio.fail_after(LIMIT):
            await machine.engine.connected.wait()
        with pytest.raises(MachineError, match="clients with the same key") as caught:
            await machine.offer()
        assert caught.value.kind is ErrorKind.EXHAUSTED
        await machine.engine.peers[0].add_candidate(IceCandidate("candidate:9", "0", 0))
        with trio.fail_after(LIMIT):
            await machine.engine.peers[0].wait_state(PeerState.CONNECTED)
        machine.engine.patient = False
        await machine.offer()


@pytest.mark.parametrize("reached", [True, False])
async def test_a_caller_that_leaves_frees_its_attempt(monkeypatch: pytest.MonkeyPatch, reached: bool) -> None:
    """If the connection exists, the caller has left because it needs the cloud no longer."""
    monkeypatch.setattr(clients, "LEAVING", 0.01)
    async with rig(monkeypatch) as machine, trio.open_nursery() as nursery:
        machine.engine.patient = True
        leaving = trio.CancelScope()
        nursery.start_soon(_cancelled_by, leaving, machine.offer)
        with trio.fail_after(LIMIT):
            await machine.engine.connected.wait()
            peer = machine.engine.peers[0]
            await peer.wait_state(PeerState.CONNECTING)
        await trio.testing.wait_all_tasks_blocked(0.05)
        if reached:
            peer.entered(PeerState.CONNECTED)
        leaving.cancel()
        ended = trio.CancelScope(deadline=trio.current_time() + (0.5 if reached else LIMIT / 2))
        with ended:
            await peer.wait_state(PeerState.CLOSED)
        assert ended.cancelled_caught is reached
        peer.close()


async def _cancelled_by(scope: trio.CancelScope, function: Callable[[], Any]) -> None:
    with scope:
        await function()


async def test_a_connection_outlives_the_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(monkeypatch) as machine, machine.connected() as stub:
        store = machine.cloud.cloud.store
        await store.write(lambda sql: sql.run("DELETE FROM part_secrets"))
        machine.cloud.cloud.events.notify_all()  # ends the calls that wait for offers
        await trio.sleep(0.1)
        assert (await stub.Echo(Request(host="x"))).valid_host == "x"


async def test_a_cloud_that_is_lost_during_an_attempt_ends_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = trio.Event()

    async def interrupted(stream: Any, client: Any) -> None:
        failed.set()
        raise StreamTerminatedError("the connection was lost")

    async with rig(monkeypatch) as machine, machine.connected() as stub, trio.open_nursery() as nursery:
        machine.engine.patient = True
        monkeypatch.setattr(clients, "_take_candidates", interrupted)
        nursery.start_soon(machine.offer)
        with trio.fail_after(LIMIT):
            await failed.wait()
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert (await stub.Echo(Request(host="x"))).valid_host == "x"
        nursery.cancel_scope.cancel()


async def test_offers_are_answered_after_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(answering, "SILENCE", 0.02)  # shorter than the cloud's heartbeats, so each call fails
    async with rig(monkeypatch) as machine:
        await trio.sleep(0.1)
        monkeypatch.setattr(answering, "SILENCE", 40.0)
        await machine.offer()


async def test_calls_are_made_again_after_another_connection_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "FIRST_DELAY", 0.01)
    waiting, wait_for_offer = trio.Semaphore(0), answering._offer

    async def counted(stream: Any) -> Any:
        waiting.release()
        return await wait_for_offer(stream)

    monkeypatch.setattr(answering, "_offer", counted)
    async with rig(monkeypatch) as machine:
        with trio.fail_after(LIMIT):
            await waiting.acquire()
            machine.answering._address.contact.mark_reached()
            await waiting.acquire()
            await machine.offer()


# ---- a client of our own


async def test_a_client_of_our_own_dials_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(monkeypatch) as machine:
        engine = CallerEngine(machine.pairs)
        with trio.fail_after(LIMIT):
            async with dialled(engine, machine.signalling(), machine.part, relay_only=True) as connection:
                async with CallChannel(connection.data) as channel:
                    assert (await Stub(channel).Echo(Request(host="x"))).valid_host == "x"
        assert decode_description(encode_description(Description("offer", "v=0"))) == machine.engine.peers[0].offered
        assert engine.peers[0].options.relay_only
        assert engine.peers[0].options.servers[0].urls == ("turn:turn.example",)
        assert engine.peers[0].state is PeerState.CLOSED


async def test_dialling_raises_the_error_of_the_cloud_or_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MAX_CONNECTIONS", 0)
    async with rig(monkeypatch) as machine:
        for host, text in ((machine.part, "0 clients are connected"), ("rover", "host not preconfigured")):
            with pytest.raises(MachineError, match=text), trio.fail_after(LIMIT):
                async with dialled(CallerEngine(machine.pairs), machine.signalling(), host):
                    pytest.fail("it was connected")


@pytest.mark.parametrize("state", [PeerState.FAILED, PeerState.CLOSED])
async def test_a_machine_that_cannot_be_reached(state: PeerState, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(CallerPeer):
        def channel(self, label: str, number: int) -> PeerChannel:
            if not number:
                self.never = MessageChannel(label, NO_PEER)
            return self.never

        async def accept(self, description: Description) -> None:
            self.entered(state)
            if state is PeerState.CLOSED:
                self.never.ended()

    class Engine(CallerEngine):
        def connect(self, options: PeerOptions) -> CallerPeer:
            self.peers.append(Failing(options, next(self._pairs)))
            return self.peers[-1]

    async with rig(monkeypatch) as machine:
        with pytest.raises(MachineError, match="neither end reaches") as caught, trio.fail_after(LIMIT):
            async with dialled(Engine(machine.pairs), machine.signalling(), machine.part):
                pytest.fail("it was connected")
        assert caught.value.kind is ErrorKind.UNAVAILABLE


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        ({}, set()),
        (
            {"auth": {"handlers": [{"type": "api-key", "config": {"a": "x", "b": "y", "keys": ["b"]}}]}},
            {("api-key", "b")},
        ),
        ({"cloud": {"id": "part", "secret": "s", "location_secrets": [{"secret": "t"}]}}, {(LOCATION_SECRET, "part")}),
        ({"cloud": {"id": "part", "secret": "s"}}, set()),
    ],
)
def test_the_keys_of_a_document(document: dict[str, Any], keys: set[tuple[str, str]]) -> None:
    decoded = decode_document(json.dumps(document).encode()).document
    assert decoded is not None
    assert set(_keys(decoded)) == keys

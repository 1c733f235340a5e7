"""Signalling at the machine's own port, for its own pages only: official SDKs try it first, and then call directly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
import trio
import trio.testing
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.access.credential_types import API_KEY
from rpc.api import messages
from rpc.carrier import Identity
from rpc.datachannel import clients
from rpc.datachannel.client import CallChannel
from rpc.peers.channel import MessageChannel
from rpc.peers.memory import memory_channels
from rpc.peers.port import Description, PeerChannel, PeerOptions, PeerState
from rpc.peers.signals import decode_description, encode_description
from runtime.server.memory import MemoryMachine, open_machine
from tests.unit.runtime.parts.cloud.test_answering import NO_PEER, FakeEngine, FakePeer

SERVICE: Final = "/proto.rpc.webrtc.v1.SignalingService/"
PAGE: Final = {"rpc-host": "page-of-this-machine"}
LIMIT: Final = 20.0
KEYS: Final = {"auth": {"handlers": [{"type": "api-key", "config": {"ada": "key of Ada"}}]}}


class Peer(FakePeer):
    """A connection with another channel for renegotiation."""

    def channel(self, label: str, number: int) -> PeerChannel:
        return MessageChannel(label, NO_PEER) if number else super().channel(label, number)


class OneEngine(FakeEngine):
    """An engine for one connection."""

    def connect(self, options: PeerOptions) -> FakePeer:
        self.peers.append(Peer(options, self._pairs[0]))
        if self.patient:
            self.peers[-1].opens = trio.Event()
        return self.peers[-1]


class Call:
    """A call of a client, with one request."""

    def __init__(self, request: Any, metadata: dict[str, str], identity: Identity | None = None) -> None:
        self.metadata = metadata
        self.identity = identity
        self.replies: list[Any] = []
        self.patience = 0  # replies until a candidate is sent
        self.machine: Any = None
        self._request = request

    async def recv_message(self) -> Any:
        return self._request

    async def send_message(self, message: Any) -> None:
        self.replies.append(message)
        if len(self.replies) == self.patience:  # the answer and both candidates
            update = messages.signaling().CallUpdateRequest(
                uuid=message.uuid, candidate={"candidate": "candidate:9", "sdp_mid": "0", "sdpm_line_index": 0}
            )
            await Call(update, PAGE, self.identity).made(self.machine, "CallUpdate")

    async def made(self, machine: MemoryMachine, method: str) -> list[Any]:
        """Make the call; return the replies."""
        self.machine = machine
        handler = machine.serving.router.get(SERVICE + method)
        assert handler is not None
        with trio.fail_after(LIMIT):
            await handler.func(self)
        return self.replies


@asynccontextmanager
async def running(document: dict[str, Any]) -> AsyncIterator[MemoryMachine]:
    """Run a machine, and wait until its parts are there."""
    async with open_machine(document) as memory:
        with trio.fail_after(LIMIT):
            await memory.machine.lifecycle.running.wait()
        yield memory


@pytest.mark.parametrize("method", ["Call", "OptionalWebRTCConfig", "CallUpdate", "Answer"])
async def test_a_webrtc_attempt_of_a_program_is_logged_as_harmless(method: str) -> None:
    async with running({}) as memory:
        with pytest.raises(GRPCError) as caught:
            await Call(None, {"rpc-host": "rover.local"}).made(memory, method)
        assert caught.value.status is Status.UNIMPLEMENTED  # other statuses end the TypeScript SDK's attempt
        assert "not an error" in str(caught.value.message)
        assert "disable_webrtc=True" in str(caught.value.message)


@asynccontextmanager
async def offered(
    monkeypatch: pytest.MonkeyPatch, machine: MemoryMachine, identity: Identity | None = None, *, patience: int = 0
) -> AsyncIterator[tuple[Any, Any, list[Any]]]:
    """Make the offer of a page; yield the page's end of the channel, the machine's connection, and the replies."""
    async with memory_channels() as pair:
        engine = OneEngine([pair])
        engine.patient = patience > 0

        @asynccontextmanager
        async def open_engine(run_blocking: Any) -> AsyncIterator[OneEngine]:
            yield engine

        monkeypatch.setattr(clients, "open_engine", open_engine)
        request = messages.signaling().CallRequest(sdp=encode_description(Description("offer", "v=0")))
        call = Call(request, PAGE, identity)
        call.patience = patience
        replies = await call.made(machine, "Call")
        yield pair[0], engine.peers[0], replies


async def calls(channel: CallChannel, method: str = "viam.robot.v1.RobotService/GetVersion") -> Status:
    """Make a call without a request; return its status."""
    from grpclib.const import Cardinality

    wire = messages.load("robot.v1.robot_pb2")
    name = method.rpartition("/")[2]
    request, reply = getattr(wire, f"{name}Request"), getattr(wire, f"{name}Response")
    try:
        async with channel.request(f"/{method}", Cardinality.UNARY_UNARY, request, reply) as stream:
            await stream.send_message(request(), end=True)
            await stream.recv_message()
    except GRPCError as error:
        return error.status
    return Status.OK


async def test_a_page_is_connected_and_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running({}) as memory:
        wire = messages.signaling()
        (config,) = await Call(wire.OptionalWebRTCConfigRequest(), PAGE).made(memory, "OptionalWebRTCConfig")
        assert not config.config.additional_ice_servers
        async with offered(monkeypatch, memory, patience=3) as (data, peer, replies):
            assert [each.text for each in peer.remote] == ["candidate:9"]
            answer, *updates = replies
            assert decode_description(answer.init.sdp).kind == "answer"
            assert [each.update.candidate.candidate for each in updates] == ["candidate:1", "candidate:2"]
            async with CallChannel(data) as channel:
                assert await calls(channel) is Status.OK
        update = wire.CallUpdateRequest(uuid=answer.uuid, done=True)  # of a call that has ended
        assert len(await Call(update, PAGE).made(memory, "CallUpdate")) == 1


async def test_an_open_machine_lets_no_page_open_a_tunnel_by_webrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running({}) as memory, offered(monkeypatch, memory) as (data, _, _):
        async with CallChannel(data) as channel:
            assert await calls(channel, "viam.robot.v1.RobotService/Tunnel") is Status.PERMISSION_DENIED


async def test_an_open_machine_that_gets_keys_ends_connections_without(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running({}) as memory, offered(monkeypatch, memory) as (_, peer, _):
        with trio.fail_after(LIMIT):
            await trio.testing.wait_all_tasks_blocked()
            memory.write(KEYS)
            await peer.wait_state(PeerState.CLOSED)


@pytest.mark.parametrize("end", ["the key", "the session"])
async def test_a_connection_ends_with_its_key_and_with_its_session(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    ada = Identity("ada", API_KEY, {"jti": "session"})
    async with running(KEYS) as memory, offered(monkeypatch, memory, ada) as (_, peer, _):
        with trio.fail_after(LIMIT):
            await trio.testing.wait_all_tasks_blocked()
            assert peer.state is PeerState.CONNECTED
            memory.serving.gate.authenticator.revoke("session of another")
            await trio.testing.wait_all_tasks_blocked()
            assert peer.state is PeerState.CONNECTED
            if end == "the session":
                memory.serving.gate.authenticator.revoke("session")
            else:
                memory.write({"auth": {"handlers": [{"type": "api-key", "config": {"bob": "key of Bob"}}]}})
            await peer.wait_state(PeerState.CLOSED)


async def test_an_offer_that_is_too_long_or_unusable_is_refused() -> None:
    async with running({}) as memory:
        for sdp, words in (("x" * 200_000, "has over"), ("%", "session description")):
            with pytest.raises(GRPCError, match=words) as caught:
                await Call(messages.signaling().CallRequest(sdp=sdp), PAGE).made(memory, "Call")
            assert caught.value.status is Status.INVALID_ARGUMENT


async def test_an_offer_that_comes_after_its_session_has_ended_is_refused() -> None:
    """The port authorizes a call when it begins; its offer may come much later."""
    async with running(KEYS) as memory:
        ada = Identity("ada", API_KEY, {"jti": "session"})

        class Late(Call):
            async def recv_message(self) -> Any:
                memory.serving.gate.authenticator.revoke("session")
                return await super().recv_message()

        request = messages.signaling().CallRequest(sdp=encode_description(Description("offer", "v=0")))
        with pytest.raises(GRPCError, match="does not accept the key 'ada'") as caught:
            await Late(request, PAGE, ada).made(memory, "Call")
        assert caught.value.status is Status.PERMISSION_DENIED

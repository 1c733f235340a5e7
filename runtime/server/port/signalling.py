"""proto.rpc.webrtc.v1.SignalingService at the machine's own port, for its own pages.

A page that is connected by WebRTC shows live video, as in the cloud. Only clients that name PAGE as their host are
answered: official SDKs try WebRTC at every address first, and at a machine's own address they call it directly.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import trio
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from rpc import Identity, Limits, ServerCore
from rpc.api import messages
from rpc.peers import MAX_CANDIDATES, MAX_SDP
from schema import MachineError

if TYPE_CHECKING:
    from engine import Part
    from rpc import Router
    from runtime.parts.webrtc.part import WebRtc
    from runtime.server.port.gate import Gate

PREFIX: Final = "/proto.rpc.webrtc.v1.SignalingService/"
HOST: Final = "rpc-host"
PAGE: Final = "page-of-this-machine"
MAX_CLIENTS: Final = 64  # as `rpc.datachannel.clients.MAX_CONNECTIONS`, which is not imported before it is needed
MAX_OFFER: Final = 2 * MAX_SDP  # characters of a description in JSON and base64


class LocalSignalling:
    """The calls of the service, and the door for the clients that they connect."""

    def __init__(self, router: Router, gate: Gate, parts: Mapping[str, Part]) -> None:
        self._gate = gate
        self._parts = parts
        self._attempts: dict[str, _Attempt] = {}
        self.core = ServerCore(router, authorize=gate.authorize, limits=Limits(max_connections=MAX_CLIENTS))

    def handler(self, path: str) -> Handler:
        """Return the handler of a path of the service."""
        method = path.removeprefix(PREFIX)
        if method == "OptionalWebRTCConfig":
            return Handler(self.configure, Cardinality.UNARY_UNARY, *_messages(method))
        if method == "Call":
            return Handler(self.call, Cardinality.UNARY_STREAM, *_messages(method))
        if method == "CallUpdate":
            return Handler(self.update, Cardinality.UNARY_UNARY, *_messages(method))
        return Handler(refuse, Cardinality.UNARY_UNARY, None, None)

    async def configure(self, stream: Any) -> None:
        """Return that no servers are needed: a page that reaches this port reaches the machine."""
        self._part(stream)
        await stream.recv_message()
        await stream.send_message(messages.signaling().OptionalWebRTCConfigResponse())

    async def call(self, stream: Any) -> None:
        """Answer an offer; send the answer and its candidates until the page is connected."""
        part = self._part(stream)
        request = await stream.recv_message()
        if len(request.sdp) > MAX_OFFER:
            raise GRPCError(Status.INVALID_ARGUMENT, f"the session description has over {MAX_OFFER} characters")
        offer = messages.signaling().AnswerRequest(
            uuid=secrets.token_hex(16),
            init={"sdp": request.sdp, "optional_config": {"disable_trickle": request.disable_trickle}},
        )
        attempt = self._attempts[offer.uuid] = _Attempt(stream, offer.uuid)
        try:
            await part.respond(attempt, offer, stream.identity, self)
        except MachineError as error:
            raise GRPCError(Status.UNAVAILABLE, str(error)) from None
        finally:
            del self._attempts[offer.uuid]

    async def update(self, stream: Any) -> None:
        """Pass a candidate of the page to its connection; nothing, if its call has ended."""
        self._part(stream)
        request = await stream.recv_message()
        attempt = self._attempts.get(request.uuid)
        if attempt is not None and _same(attempt.caller, stream.identity):
            attempt.take(request)
        await stream.send_message(messages.signaling().CallUpdateResponse())

    async def admits(self, caller: Identity | None) -> bool:
        """Return whether a caller may connect.

        The port has authorized the call, but its offer may have come much later.
        """
        return self._gate.admits(caller)

    async def until_revoked(self, caller: Identity | None) -> None:
        """Wait until a connected caller may not call any more.

        Until the key is removed, its person logs out, or an open machine gets keys.
        """
        while self._gate.admits(caller):
            await self._gate.changed.next.wait()

    def _part(self, stream: Any) -> WebRtc:
        """Return the part with the connections. GRPCError: UNIMPLEMENTED for programs, and without WebRTC."""
        part = self._parts.get("webrtc")
        metadata: Mapping[str, Any] = stream.metadata
        if metadata.get(HOST) != PAGE or part is None:
            raise refused()
        return cast("WebRtc", part)


class _Attempt:
    """A call of a page, as the stream of answers that `rpc.datachannel.clients` speaks to."""

    def __init__(self, stream: Any, uuid: str) -> None:
        self.caller: Identity | None = stream.identity
        self._stream = stream
        self._uuid = uuid
        self._send, self._receive = trio.open_memory_channel[Any](MAX_CANDIDATES + 2)

    def take(self, request: Any) -> None:
        """Queue an update of the page. Ignored if there are too many, and after the end."""
        stage = request.WhichOneof("update")
        if stage is None:
            return
        content = {
            "candidate": {"update": {"candidate": request.candidate}},
            "error": {"error": {"status": request.error}},
        }
        try:
            self._send.send_nowait(
                messages.signaling().AnswerRequest(uuid=self._uuid, **content.get(stage, {"done": {}}))
            )
        except (trio.WouldBlock, trio.ClosedResourceError):
            pass  # the engine accepts no more candidates than fit in here

    async def recv_message(self) -> Any:
        """Return the next update of the page; None after the last answer."""
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            return None

    async def send_message(self, answer: Any, *, end: bool = False) -> None:
        """Send an answer to the page. GRPCError with the reason, if it is one."""
        if end:
            self._send.close()
        stage, reply = answer.WhichOneof("stage"), messages.signaling().CallResponse
        if stage == "error":
            raise GRPCError(Status(answer.error.status.code), answer.error.status.message)
        if stage == "init":
            await self._stream.send_message(reply(uuid=self._uuid, init={"sdp": answer.init.sdp}))
        elif stage == "update":
            await self._stream.send_message(reply(uuid=self._uuid, update={"candidate": answer.update.candidate}))


async def refuse(stream: Any) -> None:
    """Reject WebRTC signaling."""
    raise refused()


def refused() -> GRPCError:
    """Return the error for programs. Official SDKs log the message as an error, and then connect directly."""
    return GRPCError(
        Status.UNIMPLEMENTED,
        "this is not an error: at its own address, a machine is called directly, and WebRTC is for calls through a "
        "cloud; dial with disable_webrtc=True to skip this attempt",
    )


def _messages(method: str) -> tuple[Any, Any]:
    wire = messages.signaling()
    return getattr(wire, f"{method}Request"), getattr(wire, f"{method}Response")


def _same(first: Identity | None, second: Identity | None) -> bool:
    if first is None or second is None:
        return first is second
    return (first.kind, first.entity) == (second.kind, second.entity)

"""Server side of calls over a data channel."""

from __future__ import annotations

from typing import Any

import trio
from grpclib.const import Status

from rpc import metadata as codec
from rpc import status as statuses
from rpc.call import Refusal, ServerCall, ServerCore, accept
from rpc.carrier import Headers, Identity, Peer
from rpc.datachannel import envelope
from rpc.datachannel.assembly import Assembly
from rpc.datachannel.connection import CarrierConnection, ChannelCall, ChannelPeer
from rpc.errors import CANCEL, ENHANCE_YOUR_CALM, PROTOCOL_ERROR, STREAM_CLOSED, ConnectionFault, StreamFault
from rpc.inbox import Budget
from rpc.peers.port import PeerChannel
from rpc.turns import Flow
from support import Bucket


async def serve_channel(
    channel: PeerChannel, core: ServerCore, *, peer: Peer, identity: Identity | None = None
) -> None:
    """Serve the calls of one data channel until it ends, then close it. Waits until the channel is open.

    `peer` is the other end of the peer connection; its certificate is ignored, and it is never treated as local. Its
    `media` are the streams of the connection, which handlers reach as `call.peer.media`.
    `identity` is the caller that signalling has authenticated. It applies to all calls, whatever authorization they
    send, so the owner closes the channel when the identity is revoked. Without it, `core.authorize` decides about each
    call.

    The end of the channel counts as the peer's farewell. Cancel this function instead if the connection has failed; its
    calls then end with UNAVAILABLE. Returns at once if the server admits no more connections.
    """
    server = ServerChannel(
        channel, core, ChannelPeer(peer.address, farewell=peer.farewell, number=peer.number, media=peer.media), identity
    )
    if not core.admit(server):
        channel.close()
        return
    try:
        await server.run()
    finally:
        core.leave(server)


class ServerChannel(CarrierConnection):
    """Server of the calls of one channel."""

    def __init__(self, channel: PeerChannel, core: ServerCore, peer: Peer, identity: Identity | None) -> None:
        super().__init__(channel, core.limits, core.statistics, peer)
        self.core = core
        self.identity = identity
        self.flow = Flow()
        self.running = 0  # calls, including those that are done and clean up
        self._nursery: trio.Nursery | None = None
        self._draining = False
        self._resets = Bucket(core.limits.reset_burst, core.limits.reset_rate)

    async def run(self) -> None:
        """Serve until the channel ends. Raises only Cancelled."""
        try:
            async with trio.open_nursery() as self._nursery:
                await self.read()
                self.abandon_all()
                self._nursery.cancel_scope.cancel()
        finally:
            self.close()

    def drain(self) -> None:
        """Refuse new calls and close once the current calls have ended. Repeated calls have no effect."""
        self._draining = True
        self._close_if_drained()

    def _close_if_drained(self) -> None:
        if self._draining and not self.running:
            self.close()

    async def handle(self, data: bytes | str) -> None:
        """Handle one envelope; if there are other connections, start a call in a turn."""
        request = envelope.parse("Request", data)
        if request.WhichOneof("type") != "headers" or self.core.alone:
            self._handle(request)
            return
        await self.core.turns.begin(self.flow)
        try:
            self._handle(request)
        finally:
            await self.core.turns.end()

    def _handle(self, request: Any) -> None:
        if not request.HasField("stream"):
            self.glitch("an envelope without a stream")
            return
        sid = request.stream.id
        stream = self.streams.get(sid)
        kind = request.WhichOneof("type")
        if kind == "headers":
            self._on_headers(sid, request.headers)
        elif kind == "rst_stream":
            if not self._resets.take(trio.current_time()):
                raise ConnectionFault(ENHANCE_YOUR_CALM, "resets", "too many calls cancelled")
            if stream is not None and request.rst_stream:
                stream.fail(CANCEL, "cancelled by the client")
        elif kind is None:
            self.glitch("an envelope without content")
        elif stream is None:
            self.glitch("a message of a call that has ended")
        else:
            assert isinstance(stream, ServerStream)
            try:
                stream.receive(request.message)
            except StreamFault as fault:
                self.stream_fault(stream, fault)

    def _on_headers(self, sid: int, headers: Any) -> None:
        if sid in self.streams:
            self.stream_fault(
                self.streams[sid], StreamFault(PROTOCOL_ERROR, "stream id", "the headers of this call were sent twice")
            )
            return
        try:
            if self._draining:
                raise StreamFault(CANCEL, "connections", "the server is shutting down")
            self._check_room()
            fields = self._fields(headers)
        except StreamFault as fault:
            self.statistics.refused(fault.reason)
            status = Status.UNAVAILABLE if self._draining else statuses.of_reset(fault.code)
            self._refuse(sid, Refusal(status, fault.text))
            return
        stream = ServerStream(self, sid)
        call = accept(stream, sid, fields, self.core, identity=self.identity)
        if isinstance(call, Refusal):
            self._refuse(sid, call)
            return
        stream.begin(call)
        self.streams[sid] = stream
        self.running += 1
        assert self._nursery is not None
        self._nursery.start_soon(call.run, name=call.method)

    def _check_room(self) -> None:
        """Raise StreamFault if there are too many calls. Those that only clean up count less, as with HTTP/2."""
        limit = self.limits.max_streams
        if len(self.streams) >= limit or self.running >= 2 * limit:
            self.glitch("headers beyond the limit of calls")
            text = f"more than {limit} calls at once on this data channel; wait until one has ended"
            raise StreamFault(ENHANCE_YOUR_CALM, "streams", text)

    def _fields(self, headers: Any) -> Headers:
        """Return the headers of a request as HTTP/2 fields. StreamFault if they are not valid."""
        method, limit = headers.method, self.limits.max_header_list
        if method[:1] != "/" or len(method) > limit:
            raise StreamFault(PROTOCOL_ERROR, "header fields", f"the method {method[:40]!r} is not /service/name")
        timeout = envelope.timeout_of(headers)
        fields = [(":method", "POST"), (":path", method), ("content-type", "application/grpc")]
        fields += envelope.fields_of(headers.metadata, limit - len(method))
        if timeout is not None:
            fields.append(("grpc-timeout", timeout))  # the last field counts
        return fields

    def _refuse(self, sid: int, refusal: Refusal) -> None:
        self.statistics.failed_calls += 1
        self.put(envelope.response_headers(sid, ()))
        self.put(envelope.response_trailers(sid, refusal.status.value, refusal.headers))

    def release(self, stream: ServerStream) -> None:
        """Forget a call whose task is about to end."""
        if self.streams.get(stream.sid) is stream:
            del self.streams[stream.sid]
        self.running -= 1
        self._close_if_drained()


class ServerStream(ChannelCall):
    """Carrier of one call."""

    call: ServerCall

    def __init__(self, connection: ServerChannel, sid: int) -> None:
        super().__init__(connection, sid)
        self._server = connection
        self._headers_sent = False
        self._ended = False  # the request is complete

    def begin(self, call: ServerCall) -> None:
        """Bind the call, whose task the caller starts."""
        self.call = call
        self.assembly = Assembly(self._server.budget, call.max_message, self._server.limits.stream_window)

    @property
    def peer(self) -> Peer:
        """Remote end of the carrier."""
        return self._server.peer

    @property
    def budget(self) -> Budget:
        """Limit of bytes received but not yet read, shared by all calls of the carrier."""
        return self._server.budget

    @property
    def flow(self) -> Flow:
        """State of the carrier in the scheduling of turns."""
        return self._server.flow

    # Received

    def receive(self, message: Any) -> None:
        """Handle one RequestMessage. StreamFault if it breaks a rule or limit."""
        if self._ended:
            raise StreamFault(STREAM_CLOSED, "frame format", "a message after the end of the request")
        if message.has_message:
            packet = message.packet_message
            if not packet.data and not packet.eom:
                self._server.glitch("an empty packet")
            data = self.assembly.add(packet.data, last=packet.eom)
            if data is None:
                return  # clients may set eos on each packet of the last message
            self.call.feed(data, len(data))
        elif not message.eos:
            self._server.glitch("a message without content")
            return
        elif self.assembly.incomplete:
            raise StreamFault(PROTOCOL_ERROR, "frame format", "the request ended in the middle of a message")
        if message.eos:
            self._ended = True
            self.call.end()

    def abandon(self, code: int, text: str) -> None:
        """Notify the receiver that its call was ended, with an HTTP/2 error code, and send nothing more."""
        if not self.done:
            self.finish()
            self.call.cancel_by_peer()

    def fail(self, code: int, text: str) -> None:
        """End the call because the peer broke a rule or limit: notify the peer and the receiver.

        The client gets the status that fits the code.
        """
        self._end(statuses.of_reset(code), text)
        self.call.cancel_by_peer()

    # Carrier

    def send_headers(self, sid: int, extra: Headers) -> None:
        """Queue the response headers: status 200, content type and `extra`, the initial metadata.

        ValueError if the metadata does not fit into one message of the channel.
        """
        if not self.done:
            self._server.put(envelope.response_headers(self.sid, extra))
            self._headers_sent = True

    async def send_message(self, sid: int, data: bytes | bytearray) -> None:
        """Send one message, including its 5-byte prefix, in order, and wait for flow control."""
        await self.send(data)

    def send_trailers(self, sid: int, status: int, extra: Headers, *, headers_sent: bool) -> None:
        """Queue the end of the response: the gRPC status and `extra` (grpc-message, trailing metadata).

        A response that was cut off inside a message is not OK.
        """
        if self.cut and not status:
            self._end(Status.CANCELLED, "a reply was cut off, because the method stopped sending it")
        elif not self.done:
            self._send_trailers(status, extra)

    def reset(self, sid: int, code: int) -> None:
        """Abort the call with an HTTP/2 error code."""
        self._end(statuses.of_reset(code), "the server has aborted the call")

    def consumed(self, sid: int, n: int) -> None:
        """Return `n` flow-controlled bytes, which the call has consumed, to the window."""
        self.assembly.consumed(n)

    def forget(self, sid: int) -> None:
        """Release the call, whose task is about to end; its `sid` is not used again."""
        self.finish()
        self._server.release(self)

    def packet(self, data: bytes, *, last: bool, end: bool) -> bytes:
        """Encode a packet."""
        return envelope.response_message(self.sid, data, last=last)

    def _end(self, status: Status, text: str) -> None:
        if not self.done:
            self._send_trailers(status.value, codec.encode_outcome(text, None, status))

    def _send_trailers(self, status: int, extra: Headers) -> None:
        if not self._headers_sent:
            self.send_headers(self.sid, ())
        self._server.put(envelope.response_trailers(self.sid, status, extra))
        self.finish()
        self._server.streams.pop(self.sid, None)

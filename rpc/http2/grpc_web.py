"""gRPC-Web over HTTP/2, as used by browsers over TLS: trailers are the last frame of the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.call import Refusal
from rpc.carrier import Headers, MutableHeaders, Peer
from rpc.http.grpc_web import Content, TextDecoder, cors, to_text, trailers_frame
from rpc.http2.connection import Connection
from rpc.inbox import Budget

if TYPE_CHECKING:
    from rpc.server_call import ServerCall
    from rpc.turns import Flow


class WebCarrier:
    """Adapter between one gRPC-Web call, for which it is the carrier, and its stream, for which it is the receiver."""

    def __init__(self, connection: Connection, flow: Flow, content: Content, fields: Mapping[str, str]) -> None:
        self._connection = connection
        self._flow = flow
        self._decoder = TextDecoder() if content is Content.WEB_TEXT else None
        self._head = [(":status", "200"), ("content-type", f"{content.value}+proto"), *cors(fields.get("origin"))]
        self.call: ServerCall | None = None

    # Carrier

    @property
    def peer(self) -> Peer:
        """Remote end of the connection."""
        return self._connection.peer

    @property
    def budget(self) -> Budget:
        """Receive budget of the connection."""
        return self._connection.budget

    @property
    def flow(self) -> Flow:
        """Scheduling state of the connection."""
        return self._flow

    def send_headers(self, sid: int, extra: Headers) -> None:
        """Queue the response headers."""
        self._connection.send_block(sid, [*self._head, *extra], end=False)

    async def send_message(self, sid: int, data: bytes | bytearray) -> None:
        """Send one message, as base64 in the text format."""
        await self._connection.send_data(sid, data if self._decoder is None else to_text(data))

    def send_trailers(self, sid: int, status: int, extra: Headers, *, headers_sent: bool) -> None:
        """Queue the trailers as the last frame of the body, or in the headers if those were not sent."""
        if not headers_sent:
            self._connection.send_block(sid, [*self._head, ("grpc-status", str(status)), *extra], end=True)
            return
        frame = trailers_frame(status, extra)
        self._connection.send_tail(sid, frame if self._decoder is None else to_text(frame))

    def reset(self, sid: int, code: int) -> None:
        """Reset the stream."""
        self._connection.reset(sid, code)

    def consumed(self, sid: int, n: int) -> None:
        """Return bytes to the window, except for text, whose encoded bytes were returned on receipt."""
        if self._decoder is None:
            self._connection.consumed(sid, n)

    def forget(self, sid: int) -> None:
        """Release the stream of the call."""
        self._connection.forget(sid)

    def refusal(self, refusal: Refusal) -> MutableHeaders:
        """Return the response headers for a refused request."""
        head = [(":status", str(refusal.http)), *self._head[1:]]
        return [*head, ("grpc-status", str(refusal.status.value)), *refusal.headers]

    # Receiver

    def feed(self, data: bytes, flow: int) -> None:
        """Pass bytes of the request to the call, decoded in the text format."""
        call = self.call
        assert call is not None
        if self._decoder is None:
            call.feed(data, flow)
            return
        self._connection.consumed(call.sid, flow)
        try:
            decoded = self._decoder.feed(data)
        except ValueError as error:
            call.fail(GRPCError(Status.INVALID_ARGUMENT, str(error)))
            return
        if decoded:
            call.feed(decoded, len(decoded))

    def end(self) -> None:
        """Mark the end of the request."""
        call = self.call
        assert call is not None
        if self._decoder is not None:
            try:
                self._decoder.end()
            except ValueError as error:
                call.fail(GRPCError(Status.INVALID_ARGUMENT, str(error)))
        call.end()

    def cancel_by_peer(self) -> None:
        """Cancel the call because the peer has reset the stream or disconnected."""
        if self.call is not None:
            self.call.cancel_by_peer()

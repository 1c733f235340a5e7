"""gRPC-Web over HTTP/2, as browsers speak it over TLS: trailers are the last bytes of the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.call import Refusal
from rpc.carrier import Headers, MutableHeaders, Peer
from rpc.inbox import Budget
from rpc.web import Content, TextDecoder, cors, to_text, trailers_frame

if TYPE_CHECKING:
    from rpc.http2_server import ServerConnection
    from rpc.server_call import ServerCall
    from rpc.turns import Flow


class WebCarrier:
    """Between one gRPC-Web call and its stream: carrier of the one, receiver of the other."""

    def __init__(self, connection: ServerConnection, content: Content, fields: Mapping[str, str]) -> None:
        self._connection = connection
        self._decoder = TextDecoder() if content is Content.WEB_TEXT else None
        self._head = [(":status", "200"), ("content-type", f"{content.value}+proto"), *cors(fields.get("origin"))]
        self.call: ServerCall | None = None

    # Carrier

    @property
    def peer(self) -> Peer:
        """Who is at the other end."""
        return self._connection.peer

    @property
    def budget(self) -> Budget:
        """That of the connection."""
        return self._connection.budget

    @property
    def flow(self) -> Flow:
        """That of the connection."""
        return self._connection.flow

    def send_headers(self, sid: int, extra: Headers) -> None:
        """Response headers."""
        self._connection.send_block(sid, [*self._head, *extra], end=False)

    async def send_message(self, sid: int, data: bytes) -> None:
        """One message."""
        await self._connection.send_data(sid, data if self._decoder is None else to_text(data))

    def send_trailers(self, sid: int, status: int, extra: Headers, *, headers_sent: bool) -> None:
        """The last frame of the body, or everything in the headers if there is no body."""
        if not headers_sent:
            self._connection.send_block(sid, [*self._head, ("grpc-status", str(status)), *extra], end=True)
            return
        frame = trailers_frame(status, extra)
        self._connection.send_tail(sid, frame if self._decoder is None else to_text(frame))

    def reset(self, sid: int, code: int) -> None:
        """Abort."""
        self._connection.reset(sid, code)

    def consumed(self, sid: int, n: int) -> None:
        """Give window back; for text it was already, because its bytes are not those of the wire."""
        if self._decoder is None:
            self._connection.consumed(sid, n)

    def forget(self, sid: int) -> None:
        """The call is over."""
        self._connection.forget(sid)

    def refusal(self, refusal: Refusal) -> MutableHeaders:
        """The answer to a request that does not become a call."""
        head = [(":status", str(refusal.http)), *self._head[1:]]
        return [*head, ("grpc-status", str(refusal.status.value)), *refusal.headers]

    # Receiver

    def feed(self, data: bytes, flow: int) -> None:
        """Bytes of the request."""
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
        """The request has ended."""
        call = self.call
        assert call is not None
        if self._decoder is not None:
            try:
                self._decoder.end()
            except ValueError as error:
                call.fail(GRPCError(Status.INVALID_ARGUMENT, str(error)))
        call.end()

    def cancel_by_peer(self) -> None:
        """The peer has left the call."""
        if self.call is not None:
            self.call.cancel_by_peer()

"""The server's side of an HTTP/2 connection: requests become calls, or exchanges for whatever is not gRPC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import trio
from grpclib.const import Status

from rpc import frames, hpack
from rpc.call import Refusal, ServerCore, accept
from rpc.carrier import Headers, Peer
from rpc.errors import NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, ConnectionFault, StreamFault
from rpc.flow import Receiver, Stream
from rpc.frame_reader import FrameReader
from rpc.http2_connection import Connection
from rpc.http2_exchange import Exchange
from rpc.http2_headers import check_request, check_trailers, content_length
from rpc.http2_web import WebCarrier
from rpc.turns import Flow
from rpc.web import CONTENT_TYPES, Content, call_headers, content_of, is_grpc, is_preflight, preflight

CALLS_A_TURN: Final = 1
"""Requests that a connection begins before others have their turn: more is less waste, fewer is less delay."""

_RESPONSE: Final = hpack.encode([(":status", "200"), ("content-type", "application/grpc")])
_STATUS: Final = tuple(hpack.encode_field("grpc-status", str(status.value)) for status in Status)


async def serve_http2(stream: trio.abc.Stream, core: ServerCore, *, preread: bytes = b"", scheme: str = "http") -> None:
    """Serve one connection from its preface to its end, and close `stream`. `preread` was already read from it.

    Cancelling it cancels its calls, which are answered UNAVAILABLE as far as the peer takes answers quickly.
    """
    connection = ServerConnection(stream, core, scheme=scheme)
    if not core.admit(connection):
        connection.writer.put(frames.settings(()))  # RFC 9113 3.4: the first frame, whatever follows
        connection.close()
        await connection.shut()
        return
    try:
        await connection.run(preread)
    finally:
        core.leave(connection)


class ServerConnection(Connection):
    """Carrier of all calls of one HTTP/2 connection."""

    server = True
    early_end = NO_ERROR  # RFC 9113 8.1: the response is complete without the rest of the request

    def __init__(self, stream: trio.abc.Stream, core: ServerCore, *, scheme: str = "http") -> None:
        super().__init__(stream, core.limits, core.statistics, Peer.of(stream))
        self.core = core
        self.scheme = scheme
        self.flow = Flow()

    # Carrier; `budget`, `consumed`, `reset` and `forget` are inherited

    def send_headers(self, sid: int, extra: Headers) -> None:
        """Response headers of a gRPC call."""
        stream = self.streams.get(sid)
        if stream is not None and not stream.local_closed:
            self.put_headers(sid, _RESPONSE + hpack.encode(extra) if extra else _RESPONSE, end=False)

    send_message = Connection.send_data

    def send_trailers(self, sid: int, status: int, extra: Headers, *, headers_sent: bool) -> None:
        """End of a gRPC call."""
        stream = self.streams.get(sid)
        if stream is None or stream.local_closed:
            return
        block = _STATUS[status] if headers_sent else _RESPONSE + _STATUS[status]
        stream.local_closed = True
        self.put_headers(sid, block + hpack.encode(extra) if extra else block, end=True)

    def drain(self) -> None:
        """As Connection; pages, which may never end, have `limits.farewell`."""
        super().drain()
        for stream in self.streams.values():
            if isinstance(stream.receiver, Exchange):
                stream.receiver.drain()

    # Requests

    async def _digest(self, reader: FrameReader, data: bytes) -> None:
        """As any connection, but beginning few calls at once where there are other connections."""
        turns = self.core.turns
        if self.core.alone:
            reader.feed(data)
            return
        more = True
        while more and not self.closed:
            await turns.begin(self.flow)
            try:
                more = reader.feed(data, CALLS_A_TURN + 1)
            finally:
                await turns.end()
            data = b""

    def on_headers(self, sid: int, block: bytes, end: bool) -> None:
        """A request, or the trailers of one."""
        try:
            headers = self.decoder.decode(block)
        except StreamFault as fault:
            if sid > self.last_sid and sid & 1:
                self.last_sid = sid
            self.stream_fault(sid, fault)
            return
        if sid <= self.last_sid or not sid & 1:
            self._on_trailers(sid, headers, end)
            return
        self.last_sid = sid
        if not self.accepting:
            return
        if len(self.streams) >= self.limits.max_streams and self._full():
            self.refused("streams")
            self.writer.put(frames.rst_stream(sid, REFUSED_STREAM))
            self.on_glitch()
            return
        fields = dict(headers)
        try:
            check_request(headers, fields)
            expected = content_length(fields) if "content-length" in fields else None
        except StreamFault as fault:
            self.stream_fault(sid, fault)
            return
        content = CONTENT_TYPES.get(fields.get("content-type", ""))
        if content is not Content.GRPC:
            self._web_or_http(sid, headers, fields, expected, end)
            return
        call = accept(self, sid, headers, self.core, fields=fields)
        if isinstance(call, Refusal):
            self._refuse(sid, call, end)
            return
        self._begin_call(sid, call, expected, end)
        assert self.nursery is not None
        self.nursery.start_soon(call.run, name=call.method)

    def _full(self) -> bool:
        """Whether one more stream is one too many.

        A stream that the peer has reset is over for the peer, which may use its place at once. Its handler may still be
        tidying up; resetting quickly gets a peer twice as many handlers, no more.
        """
        live = sum(not (stream.local_closed and stream.remote_closed) for stream in self.streams.values())
        return live >= self.limits.max_streams or len(self.streams) >= 2 * self.limits.max_streams

    def _begin_call(self, sid: int, receiver: Receiver, expected: int | None, end: bool) -> Stream:
        stream = self.add(sid, receiver)
        stream.expected = expected
        if end:
            stream.remote_closed = True
            receiver.end()
        return stream

    def _web_or_http(
        self,
        sid: int,
        headers: Headers,
        fields: Mapping[str, str],
        expected: int | None,
        end: bool,
    ) -> None:
        assert self.nursery is not None
        content = content_of(fields.get("content-type", ""))
        if is_preflight(fields[":method"], fields):
            self._answer(sid, [(":status", "204"), *preflight(fields)], end)
        elif content in (Content.WEB, Content.WEB_TEXT):
            carrier = WebCarrier(self, content, fields)
            call = accept(carrier, sid, call_headers(content, headers), self.core, web=True)
            if isinstance(call, Refusal):
                self._answer(sid, carrier.refusal(call), end)
                return
            carrier.call = call
            self._begin_call(sid, carrier, expected, end)
            self.nursery.start_soon(call.run, name=call.method)
        elif self.core.fallback is None or is_grpc(fields.get("content-type", "")):
            refusal = accept(self, sid, headers, self.core, fields=fields)
            if isinstance(refusal, Refusal):
                self._refuse(sid, refusal, end)
        else:
            exchange = Exchange(self, sid, headers, fields, self.core.fallback)
            self._begin_call(sid, exchange, expected, end)
            if self.draining:
                exchange.drain()
            self.nursery.start_soon(exchange.run, name=f"{exchange.method} {exchange.path}")

    def _refuse(self, sid: int, refusal: Refusal, end: bool) -> None:
        self.statistics.failed_calls += 1
        headers = [(":status", str(refusal.http)), ("content-type", "application/grpc")]
        self._answer(sid, [*headers, ("grpc-status", str(refusal.status.value)), *refusal.headers], end)

    def _answer(self, sid: int, headers: Headers, end: bool) -> None:
        """A whole response without body to a request that gets no stream."""
        self.put_headers(sid, hpack.encode(headers), end=True)
        if not end:
            self.writer.put(frames.rst_stream(sid, NO_ERROR))

    def _on_trailers(self, sid: int, headers: Headers, end: bool) -> None:
        if not sid & 1:
            raise ConnectionFault(PROTOCOL_ERROR, "stream id", f"HEADERS on stream {sid}, which is the server's")
        stream = self.streams.get(sid)
        if stream is None or stream.remote_closed:
            self.on_glitch()  # late, the call is over
            return
        try:
            check_trailers(headers)
            if not end:
                raise StreamFault(PROTOCOL_ERROR, "frame format", "a second HEADERS that does not end the stream")
        except StreamFault as fault:
            self.stream_fault(sid, fault)
            return
        stream.remote_closed = True
        self.deliver_end(stream)

    def abandon(self, stream: Stream, code: int, text: str) -> None:
        """The peer has left the call, or broke its rules."""
        stream.receiver.cancel_by_peer()

    def is_idle(self, sid: int) -> bool:
        """True for streams that the client has not begun."""
        return sid > self.last_sid or not sid & 1

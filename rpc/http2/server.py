"""Server side of an HTTP/2 connection: requests become gRPC calls or other HTTP exchanges."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import perf_counter
from typing import Final

import trio
from grpclib.const import Status

from rpc.access.admission import ConnectionPlace
from rpc.call import Refusal, ServerCore, accept
from rpc.carrier import Headers, Identity, Peer
from rpc.errors import (
    NO_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    STREAM_CLOSED,
    ConnectionFault,
    HeadersTooLarge,
    StreamFault,
)
from rpc.http.grpc_web import Content, call_headers, content_of, is_grpc, is_preflight, preflight
from rpc.http2.codec import frames, hpack
from rpc.http2.codec.frame_reader import FrameReader
from rpc.http2.codec.headers import check_request, check_trailers, content_length
from rpc.http2.connection import Connection
from rpc.http2.exchange import Exchange
from rpc.http2.flow import Receiver, Stream
from rpc.http2.grpc_web import WebCarrier
from rpc.http2.skipped import Skipped
from rpc.peer_timeouts import catch_up
from rpc.turns import Flow

_log = logging.getLogger("rpc.http2")

_RESPONSE: Final = hpack.encode_headers([(":status", "200"), ("content-type", "application/grpc")])
_STATUS: Final = tuple(hpack.encode_header("grpc-status", str(status.value)) for status in Status)


async def serve_http2(
    stream: trio.abc.Stream,
    core: ServerCore,
    *,
    preread: bytes = b"",
    scheme: str = "http",
    ticket: ConnectionPlace | None = None,
    peer: Peer | None = None,
    identity: Identity | None = None,
) -> None:
    """Serve one connection from its preface to its end, then close `stream`. `preread` was already read from it.

    `peer` is the other end, by default that of the socket. `identity` is the caller of all calls, if it was established
    before; then `core.authorize` is not asked, and credentials in requests have no effect.

    Cancellation cancels its calls; they end with UNAVAILABLE if the peer reads the response in time.
    """
    connection = ServerConnection(stream, core, scheme=scheme, ticket=ticket, peer=peer, identity=identity)
    if ticket is not None:
        ticket.abort = connection.abort
    if not core.admit(connection):
        connection.writer.put(frames.settings(()))  # RFC 9113 3.4: SETTINGS must be the first frame
        connection.close()
        await connection.shut()
        return
    try:
        await connection.run(preread)
    finally:
        core.leave(connection)


class ServerConnection(Connection):
    """Carrier of all calls of one HTTP/2 connection."""

    __slots__ = ("core", "flow", "highest", "identity", "scheme", "skipped", "ticket")

    server = True
    early_end = NO_ERROR  # RFC 9113 8.1: the response is complete without the rest of the request

    def __init__(
        self,
        stream: trio.abc.Stream,
        core: ServerCore,
        *,
        scheme: str = "http",
        ticket: ConnectionPlace | None = None,
        peer: Peer | None = None,
        identity: Identity | None = None,
    ) -> None:
        super().__init__(stream, core.limits, core.statistics, Peer.of(stream) if peer is None else peer)
        self.core = core
        self.identity = identity
        self.scheme = scheme
        self.ticket = ticket
        self.flow = Flow()
        self.highest = -1  # highest id used by the client; exceeds `last_sid` after a GOAWAY
        self.skipped = Skipped(core.limits.max_streams, core.limits.stream_window)

    # Carrier interface; `budget`, `consumed`, `reset` and `forget` are inherited

    def send_headers(self, sid: int, extra: Headers) -> None:
        """Queue the response headers of a gRPC call."""
        stream = self.streams.get(sid)
        if stream is not None and not stream.local_closed:
            self.put_headers(sid, _RESPONSE + hpack.encode_headers(extra) if extra else _RESPONSE, end=False)

    send_message = Connection.send_data

    def send_trailers(self, sid: int, status: int, extra: Headers, *, headers_sent: bool) -> None:
        """Queue the trailers of a gRPC call."""
        stream = self.streams.get(sid)
        if stream is None or stream.local_closed:
            return
        block = _STATUS[status] if headers_sent else _RESPONSE + _STATUS[status]
        stream.local_closed = True
        self.put_headers(sid, block + hpack.encode_headers(extra) if extra else block, end=True)

    def drain(self) -> None:
        """Accept no new calls and close once the current calls have ended.

        Pages, which may stream without end, are cancelled after `limits.farewell`.
        """
        super().drain()
        for stream in self.streams.values():
            if isinstance(stream.receiver, Exchange):
                stream.receiver.drain()

    # Requests

    async def _handle(self, reader: FrameReader, data: bytes) -> None:
        """Handle received bytes; if there are other connections, start `Turns.calls` calls in each turn."""
        turns, flow = self.core.turns, self.flow
        if self.core.alone:
            reader.feed(data)
            return
        more = True
        while more and not self.closed:
            await turns.begin(flow)
            began, seen = perf_counter(), 0
            most = turns.calls(flow, began)
            try:
                seen = reader.feed(data, most)
            finally:
                await turns.end()
            more, single = seen > most, seen == 1 and bool(data)
            turns.measured(flow, began, perf_counter() - began, calls=min(seen, most), full=more, single=single)
            data = b""

    def on_headers(self, sid: int, block: bytes, end: bool) -> None:
        """Handle the headers or the trailers of a request."""
        if not sid & 1:
            raise ConnectionFault(PROTOCOL_ERROR, "stream id", f"HEADERS on stream {sid}, which is an id of the server")
        try:
            headers = self.decoder.decode(block)
        except HeadersTooLarge as fault:
            new = sid > self.highest or (self.limits.late_streams and sid in self.skipped)
            if sid > self.highest:
                self._advance_to(sid)
            self.skipped.take(sid)
            if not (new and self.accepting and self._answer_too_large(sid, fault, end)):
                self.stream_fault(sid, fault)
            return
        if sid <= self.highest and not (self.limits.late_streams and sid in self.skipped):
            self._on_later_headers(sid, headers, end)
            return
        if sid > self.highest:
            self._advance_to(sid)
        early_data = self.skipped.take(sid)
        if not self.accepting:
            if sid <= self.last_sid:
                self.writer.put(frames.rst_stream(sid, REFUSED_STREAM))
            else:
                self.on_glitch("HEADERS of a stream that GOAWAY has rejected")
            return
        self._on_request(sid, headers, end)
        for data, flow, last in early_data:
            self.receive(sid, data, flow, last)

    def _advance_to(self, sid: int) -> None:
        """Record `sid` as the highest id in use, and the ids below it that were skipped."""
        if sid > self.highest + 2:
            self.skipped.add(self.highest + 2, sid)
        self.highest = sid
        if self.accepting:
            self.last_sid = sid

    def _on_request(self, sid: int, headers: Headers, end: bool) -> None:
        if len(self.streams) >= self.limits.max_streams and self._full():
            self.refused("streams")
            self.writer.put(frames.rst_stream(sid, REFUSED_STREAM))
            self.on_glitch("HEADERS beyond the limit of streams")
            return
        fields = dict(headers)
        try:
            check_request(headers, fields)
            expected = content_length(fields) if "content-length" in fields else None
        except StreamFault as fault:
            self.stream_fault(sid, fault)
            return
        if self.ticket is not None:
            self.ticket.count_for_client(headers)
        content = content_of(fields.get("content-type", ""))
        if (
            "origin" in fields
            and content is Content.GRPC
            and (origin_refusal := self._origin_refusal(fields)) is not None
        ):
            self._refuse(sid, origin_refusal, end)
            return
        if content is not Content.GRPC:
            self._web_or_http(sid, headers, fields, expected, end)
            return
        call = accept(self, sid, headers, self.core, fields=fields, identity=self.identity)
        if isinstance(call, Refusal):
            self._refuse(sid, call, end)
            return
        self.recognize(key=call.identity is not None)
        self._begin_call(sid, call, expected, end)
        assert self.nursery is not None
        self.nursery.start_soon(call.run, name=call.method)

    def recognize(self, *, key: bool) -> None:
        """Mark the connection as known after an admitted request; `key` is True if it presented a valid token."""
        if self.ticket is not None:
            self.ticket.recognize(key=key)

    async def watch_stranger(self) -> None:
        """Close a connection that is not recognized in time; wait for its pages in progress first."""
        ticket = self.ticket
        if ticket is None or ticket.through_proxy:
            return
        with trio.move_on_after(self.limits.authentication_timeout):
            await ticket.recognized.wait()
        await catch_up()
        while not ticket.recognized.is_set():
            if not any(isinstance(stream.receiver, Exchange) for stream in self.streams.values()):
                self.give_up("authentication timeout")
                return
            await self.quiet.next.wait()

    def _full(self) -> bool:
        """Return True if no further stream is allowed.

        The peer may replace a reset stream at once while its handler still cleans up. A peer that resets streams
        quickly can therefore occupy up to twice as many handlers, but no more.
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
        is_preflight_request = is_preflight(fields[":method"], fields)
        is_web_call = content in (Content.WEB, Content.WEB_TEXT)
        if (is_preflight_request or is_web_call) and (origin_refusal := self._origin_refusal(fields)) is not None:
            self._refuse(sid, origin_refusal, end)
        elif is_preflight_request:
            self._answer(sid, [(":status", "204"), *preflight(fields)], end)
        elif content in (Content.WEB, Content.WEB_TEXT):
            carrier = WebCarrier(self, self.flow, content, fields)
            call = accept(carrier, sid, call_headers(content, headers), self.core, web=True, identity=self.identity)
            if isinstance(call, Refusal):
                self._answer(sid, carrier.refusal(call), end)
                return
            self.recognize(key=call.identity is not None)
            carrier.call = call
            self._begin_call(sid, carrier, expected, end)
            self.nursery.start_soon(call.run, name=call.method)
        elif self.core.fallback is None or is_grpc(fields.get("content-type", "")):
            refusal = accept(self, sid, headers, self.core, fields=fields)
            if isinstance(refusal, Refusal):
                self._refuse(sid, refusal, end)
        else:
            exchange = Exchange(
                self, sid, headers, fields, self.core.fallback, scheme=self.scheme, recognize=self.recognize
            )
            self._begin_call(sid, exchange, expected, end)
            if self.draining:
                exchange.drain()
            self.nursery.start_soon(exchange.run, name=f"{exchange.method} {exchange.path}")

    def _origin_refusal(self, fields: Mapping[str, str]) -> Refusal | None:
        """Return the refusal of a browser request whose origin is not allowed, otherwise None."""
        authority = fields.get(":authority") or fields.get("host", "")
        return self.core.refuse_origin(self.scheme, authority, fields.get("origin"))

    def _refuse(self, sid: int, refusal: Refusal, end: bool) -> None:
        self.statistics.failed_calls += 1
        headers = [(":status", str(refusal.http)), ("content-type", "application/grpc")]
        self._answer(sid, [*headers, ("grpc-status", str(refusal.status.value)), *refusal.headers], end)

    def _answer_too_large(self, sid: int, fault: HeadersTooLarge, end: bool) -> bool:
        """Answer a request whose headers are too large; False if they do not start like a request."""
        fields = dict(fault.fields)
        if ":method" not in fields or ":path" not in fields:
            return False
        self.refused(fault.reason)
        grpc = content_of(fields.get("content-type", "")) is Content.GRPC
        text = f"{fault.text}; send less metadata"
        self._refuse(sid, Refusal(Status.RESOURCE_EXHAUSTED, text, http=200 if grpc else 431), end)
        return True

    def _answer(self, sid: int, headers: Headers, end: bool) -> None:
        """Queue a complete response without body to a request for which no stream is created."""
        self.put_headers(sid, hpack.encode_headers(headers), end=True)
        if not end:
            self.writer.put(frames.rst_stream(sid, NO_ERROR))

    def _on_later_headers(self, sid: int, headers: Headers, end: bool) -> None:
        """Handle HEADERS on an id that was used or skipped before."""
        stream = self.streams.get(sid)
        request = bool(headers) and headers[0][0][:1] == ":"
        if request and self.limits.late_streams:
            if stream is None and sid <= self.skipped.forgotten:
                self._not_begun(sid, "HEADERS")  # possibly a second response, which clients ignore; better than none
            else:
                self.on_glitch("HEADERS that were received before")  # the call has, or will get, its response
            return
        if stream is None:
            if request or sid in self.skipped:
                self._not_begun(sid, "HEADERS")
            else:
                self.on_glitch("trailers of a call that has ended")
            return
        if stream.remote_closed:
            self.on_frame_after_end(stream, "HEADERS")
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
        """Cancel the call or exchange of a stream."""
        stream.receiver.cancel_by_peer()

    def is_idle(self, sid: int) -> bool:
        """Return True for streams that the client has not opened."""
        return sid > self.highest or not sid & 1

    # Streams that a client opened out of order, or not at all

    def on_stray_data(self, sid: int, data: bytes, flow: int, end: bool) -> None:
        """Handle DATA without a stream: after its end, or before its HEADERS if `limits.late_streams` is set."""
        late = self.limits.late_streams
        if late and sid > self.highest and sid & 1:
            self._advance_to(sid)
            self.skipped.add(sid, sid + 2)
        if sid not in self.skipped:
            super().on_stray_data(sid, data, flow, end)
        elif not (late and self.skipped.keep(sid, (data, flow, end))):
            self._not_begun(sid, "DATA")

    def on_frame_after_end(self, stream: Stream, what: str) -> None:
        """Handle a frame after END_STREAM; with `limits.late_streams`, it may be a duplicate and is only a glitch."""
        if self.limits.late_streams:
            self.on_glitch(f"{what} that was received before")
        else:
            super().on_frame_after_end(stream, what)

    def on_reset(self, sid: int, code: int) -> None:
        """Handle a stream reset by the peer; the HEADERS of the stream may not have arrived yet."""
        if self.limits.late_streams and sid > self.highest and sid & 1:
            self._advance_to(sid)
        self.skipped.take(sid)
        super().on_reset(sid, code)

    def _not_begun(self, sid: int, what: str) -> None:
        """Reset a stream that does not exist and can no longer be opened: RFC 9113 5.1, "closed"."""
        self.skipped.take(sid)
        self.refused("stream id")
        _log.info("%s of %s on stream %d, which is closed: it was reset", what, self.peer.addr(), sid)
        self.writer.put(frames.rst_stream(sid, STREAM_CLOSED))
        self.on_glitch(f"{what} on a closed stream")

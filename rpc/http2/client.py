"""Client side of an HTTP/2 connection."""

from __future__ import annotations

from collections.abc import Callable

import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.carrier import Caller, Headers, Peer
from rpc.errors import CANCEL, PROTOCOL_ERROR, REFUSED_STREAM, ConnectionFault, StreamFault, code_name
from rpc.http2.codec import frames, hpack
from rpc.http2.codec.headers import check_response, check_trailers
from rpc.http2.connection import Connection
from rpc.http2.flow import Stream
from rpc.limits import Limits
from rpc.statistics import Statistics

_ASSUMED_STREAMS = 100  # until the server's SETTINGS arrive; RFC 9113 recommends at least this


class ClientConnection(Connection):
    """Connection to a server, a `CallConnection`. It accepts no new calls once `usable` is false.

    `request_block` returns the header block that starts every request of a method.
    """

    __slots__ = ("_max_streams", "_request_block", "_slots", "ended")

    server = False
    early_end = CANCEL

    def __init__(
        self,
        stream: trio.abc.Stream,
        limits: Limits,
        statistics: Statistics,
        request_block: Callable[[str], bytes],
    ) -> None:
        super().__init__(stream, limits, statistics, Peer.of(stream))
        self._request_block = request_block
        self.last_sid = -1
        self._max_streams = _ASSUMED_STREAMS
        self._slots = trio.lowlevel.ParkingLot()
        self.ended = trio.Event()

    async def run(self, preread: bytes = b"", *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until the peer disconnects or breaks a rule, or `close` is called. Sets `ended` when it returns."""
        try:
            await super().run(preread, task_status=task_status)
        finally:
            self.ended.set()

    @property
    def usable(self) -> bool:
        """True while new calls can start."""
        return not self.closed and not self.draining and self.last_sid < frames.MAX_ID - 1

    async def begin(self, caller: Caller, method: str, headers: Headers, *, end: bool) -> int:
        """Open a stream for a call of `method`, waiting for a free stream, see `CallConnection.begin`."""
        while len(self.streams) >= self._max_streams and self.usable:
            await self._slots.park()
        if not self.usable:
            raise GRPCError(Status.UNAVAILABLE, "the connection was lost")
        sid = self.last_sid = self.last_sid + 2
        stream = self.add(sid, caller)
        stream.local_closed = end
        block = self._request_block(method)
        self.put_headers(sid, block + hpack.encode_headers(headers) if headers else block, end=end)
        return sid

    def retire(self) -> None:
        """Accept no new calls, and close the connection after its last call."""
        self.draining = True
        self._slots.unpark_all()
        if not self.streams:
            self.close()

    def forget(self, sid: int) -> None:
        """Release the call's stream; the connection closes after its last stream if it is draining."""
        super().forget(sid)
        self._slots.unpark()
        if self.draining and not self.streams:
            self.close()

    def abandon(self, stream: Stream, code: int, text: str) -> None:
        """Terminate the call."""
        stream.receiver.terminate(code, text)

    def abandon_all(self) -> None:
        """Terminate all calls and wake calls that wait for a stream."""
        super().abandon_all()
        self._slots.unpark_all()

    def is_idle(self, sid: int) -> bool:
        """Return True for streams that this side has not opened."""
        return sid > self.last_sid or not sid & 1

    def change_max_streams(self, limit: int) -> None:
        """Apply the server's limit of concurrent calls."""
        self._max_streams = limit
        self._slots.unpark_all()

    def on_headers(self, sid: int, block: bytes, end: bool) -> None:
        """Handle response headers or trailers."""
        stream = self.streams.get(sid)
        try:
            headers = self.decoder.decode(block)
            if stream is None or stream.remote_closed:
                if self.is_idle(sid):
                    raise ConnectionFault(PROTOCOL_ERROR, "stream id", f"HEADERS on stream {sid}, which was not opened")
                self.on_glitch("HEADERS of a call that has ended")
                return
            if headers and headers[0][0] == ":status":
                check_response(headers)
                if headers[0][1][:1] == "1":
                    if end:
                        raise StreamFault(PROTOCOL_ERROR, "frame format", "an interim response that ends the stream")
                    self.on_glitch("an interim response")
                    return
            else:
                check_trailers(headers)
            if end:
                stream.remote_closed = True
            stream.receiver.on_headers(headers, end=end)
        except StreamFault as fault:
            self.stream_fault(sid, fault)
            return
        if end:
            stream.receiver.end()

    def on_goaway(self, last: int, code: int, debug: bytes) -> None:
        """Stop opening streams. Calls after stream `last` end with REFUSED_STREAM and can be retried; others go on."""
        self.draining = True
        self.accepting = False
        self._slots.unpark_all()
        text = "the server is shutting down"
        if code or debug:
            debug_text = debug[:200].decode("ascii", "replace")
            text = f"the server closed the connection: {code_name(code)}{debug_text and ', '}{debug_text}"
        for sid, stream in tuple(self.streams.items()):
            if sid > last:
                self._mark_closed(stream)
                self.abandon(stream, REFUSED_STREAM, text)
        if not self.streams:
            self.close()

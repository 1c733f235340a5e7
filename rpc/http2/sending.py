"""Sending on the streams of one HTTP/2 connection, under stream and connection flow control."""

from __future__ import annotations

from typing import Final

import trio
from grpclib.exceptions import StreamTerminatedError

from rpc.carrier import Headers
from rpc.errors import CANCEL, FLOW_CONTROL_ERROR, PROTOCOL_ERROR, ConnectionFault, StreamFault
from rpc.http2.codec import frames
from rpc.http2.codec.hpack import NO_TABLE, encode_headers
from rpc.http2.flow import Stream
from rpc.http2.streams import Streams

_JOIN: Final = 4096  # bytes; longer payloads are queued separately from their frame header to avoid a copy


class SendingStreams(Streams):
    """Streams with sending. Data that fits the windows is queued at once; the rest waits for the peer, in order."""

    __slots__ = ()

    def put_headers(self, sid: int, block: bytes, *, end: bool) -> None:
        """Queue a header block."""
        if self.shrink_table:
            self.shrink_table = False
            block = NO_TABLE + block
        self.writer.put(frames.headers(sid, block, end=end, max_frame=self.send_frame))

    async def send_data(self, sid: int, data: bytes | bytearray, *, end: bool = False) -> None:
        """Send bytes of a body under flow control. StreamTerminatedError if the stream is closed.

        Not a checkpoint if the bytes fit the windows. Cancellation after a part was sent resets the stream.
        """
        stream = self.streams.get(sid)
        if stream is None or stream.local_closed:
            raise StreamTerminatedError("the peer has closed the stream")
        n = len(data)
        writer = self.writer
        if (
            n <= stream.send_window
            and n <= self.send_window
            and n <= self.send_frame
            and writer.size <= self.limits.send_high_water
            and stream.lock is None
        ):
            stream.send_window -= n
            self.send_window -= n
            head = frames.head(frames.DATA, frames.END_STREAM if end else 0, sid, n)
            if n <= _JOIN:
                writer.put(head + data)
            else:
                writer.put(head)
                writer.put(data)
            if end:
                stream.local_closed = True
            return
        lock = stream.lock
        if lock is None:
            lock = stream.lock = trio.Lock()
        async with lock:
            await self._send_slowly(stream, data, end)
        if not lock.locked():
            stream.lock = None

    async def _send_slowly(self, stream: Stream, data: bytes | bytearray, end: bool) -> None:
        view = memoryview(data)
        position, n = 0, len(data)
        writer = self.writer
        try:
            while True:
                await writer.space()
                if stream.local_closed:
                    raise StreamTerminatedError("the peer has closed the stream")
                room = min(stream.send_window, self.send_window, self.send_frame, n - position)
                if room <= 0 and position < n:
                    await self._wait_for_window(stream)
                    continue
                position += room
                last = end and position == n
                stream.send_window -= room
                self.send_window -= room
                writer.put(frames.head(frames.DATA, frames.END_STREAM if last else 0, stream.sid, room))
                writer.put(view[position - room : position])
                if position == n:
                    stream.local_closed = last
                    return
        finally:
            if 0 < position < n:
                self.reset(stream.sid, CANCEL)  # cancelled inside a message, which cannot be continued
            if self.send_window > 0:
                self._waiting.unpark()

    async def _wait_for_window(self, stream: Stream) -> None:
        with trio.move_on_after(self.limits.window_stall) as scope:
            if stream.send_window > 0:
                await self._waiting.park()
            else:
                if self.send_window > 0:
                    self._waiting.unpark()
                await stream.park()
        if scope.cancelled_caught:
            self.stream_fault(stream.sid, StreamFault(CANCEL, "slow reader", "no window for too long"))

    def on_window(self, sid: int, n: int) -> None:
        """Add `n` bytes to the send window of a stream, or of the connection if `sid` is 0."""
        if not sid:
            self.send_window += n
            if self.send_window > frames.MAX_WINDOW:
                raise ConnectionFault(FLOW_CONTROL_ERROR, "flow control", f"window of {self.send_window} bytes")
            if self._waiting:
                self._waiting.unpark()
            for blocked in [stream for stream in self.streams.values() if stream.tail]:
                self._send_tail(blocked)
            return
        stream = self.streams.get(sid)
        if stream is None or stream.local_closed:
            if self.is_idle(sid):
                raise ConnectionFault(
                    PROTOCOL_ERROR, "stream id", f"WINDOW_UPDATE on stream {sid}, which was not opened"
                )
            self.on_glitch("WINDOW_UPDATE of a stream that has ended")
            return
        try:
            stream.widen(n)
        except StreamFault as fault:
            self.stream_fault(sid, fault)
            return
        if stream.tail:
            self._send_tail(stream)

    def change_initial_window(self, size: int) -> None:
        """Apply the peer's INITIAL_WINDOW_SIZE, also to open streams."""
        change, self.initial_window = size - self.initial_window, size
        for stream in tuple(self.streams.values()):
            try:
                stream.widen(change)
            except StreamFault as fault:
                raise ConnectionFault(fault.code, fault.reason, fault.text) from fault

    def change_max_streams(self, limit: int) -> None:
        """Apply the peer's MAX_CONCURRENT_STREAMS. Clients override this."""

    def send_block(self, sid: int, headers: Headers, *, end: bool) -> None:
        """Queue header fields on a stream; ignored if this side of the stream is closed."""
        stream = self.streams.get(sid)
        if stream is not None and not stream.local_closed:
            stream.local_closed = end
            self.put_headers(sid, encode_headers(headers), end=end)

    def send_tail(self, sid: int, data: bytes) -> None:
        """Queue the last bytes of a body; bytes beyond the windows are sent when the peer widens them."""
        stream = self.streams.get(sid)
        if stream is not None and not stream.local_closed:
            stream.tail = data
            self._send_tail(stream)

    def _send_tail(self, stream: Stream) -> None:
        while stream.tail:
            room = min(stream.send_window, self.send_window, self.send_frame, len(stream.tail))
            if room <= 0:
                return
            data, stream.tail = stream.tail[:room], stream.tail[room:]
            stream.send_window -= room
            self.send_window -= room
            self.writer.put(frames.frame(frames.DATA, 0 if stream.tail else frames.END_STREAM, stream.sid, data))
        stream.local_closed = True
        if stream.finished:
            self.forget(stream.sid)

"""Streams of one HTTP/2 connection: lifecycle, resets and receiving. `rpc.http2.sending` adds sending."""

from __future__ import annotations

import trio

from rpc.carrier import Peer
from rpc.errors import (
    CANCEL,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    NO_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    STREAM_CLOSED,
    ConnectionFault,
    Reason,
    StreamFault,
    code_name,
)
from rpc.http2.codec import frames
from rpc.http2.codec.hpack import Decoder
from rpc.http2.flow import Stream
from rpc.http2.writer import DIRECT, Writer
from rpc.inbox import Budget
from rpc.limits import Limits
from rpc.statistics import Statistics
from support import Bucket, ChangeSignal


class Streams:
    """Base class of a connection. Subclasses read frames and define how a stream ends from outside (`abandon`).

    Bytes are returned to the connection's receive window when they arrive, and to a stream's window when they are
    consumed. An unread stream therefore cannot block others, and stream windows and the budget limit unread bytes.
    """

    __slots__ = (
        "_fd",
        "_stream_credit",
        "_waiting",
        "accepting",
        "budget",
        "closed",
        "decoder",
        "draining",
        "faulty",
        "glitches",
        "initial_window",
        "last_read",
        "last_sid",
        "limits",
        "nursery",
        "peer",
        "quiet",
        "quiet_since",
        "receive_owed",
        "receive_window",
        "resets",
        "send_frame",
        "send_window",
        "settled",
        "shrink_table",
        "statistics",
        "stream",
        "streams",
        "writer",
    )

    early_end: int  # RST_STREAM code after a complete response to an incomplete request

    def __init__(self, stream: trio.abc.Stream, limits: Limits, statistics: Statistics, peer: Peer) -> None:
        self.stream = stream
        self._fd = stream.socket.fileno() if DIRECT and isinstance(stream, trio.SocketStream) else -1
        self.limits = limits
        self.statistics = statistics
        self.peer = peer
        self.budget = Budget(limits.max_buffered)
        self.writer = Writer(stream, limits, self.on_lost)
        # A table smaller than the default applies only once the peer signals it in its header blocks.
        table = max(limits.header_table, frames.DEFAULT_TABLE)
        self.decoder = Decoder(table_size=table, max_list=limits.max_header_list)
        self.nursery: trio.Nursery | None = None
        self.streams: dict[int, Stream] = {}  # streams of running calls, including cancelled calls that clean up
        self.last_sid = 0  # the peer's highest stream (server) or this side's (client)
        self.closed = False
        self.draining = False
        self.accepting = True
        self.faulty = False
        self.settled = trio.Event()  # the peer's first SETTINGS have arrived
        self.last_read = 0.0
        self.quiet = ChangeSignal()  # when the last stream ends
        self.quiet_since = trio.current_time()
        # Limits set by the peer
        self.send_window = frames.DEFAULT_WINDOW
        self.initial_window = frames.DEFAULT_WINDOW
        self.send_frame = frames.DEFAULT_FRAME
        self.shrink_table = False
        self._waiting = trio.lowlevel.ParkingLot()  # senders waiting for connection window, in order
        # Limits set by this side
        self.receive_window = max(limits.connection_window, frames.DEFAULT_WINDOW)
        self.receive_owed = 0
        self._stream_credit = limits.stream_window // 2  # returned in portions of at least this size
        self.glitches = Bucket(limits.glitch_burst, limits.glitch_rate)
        self.resets = Bucket(limits.reset_burst, limits.reset_rate)

    # For subclasses

    def on_lost(self, reason: Reason | None) -> None:
        """Handle the loss of the peer, reported by the writer."""
        raise NotImplementedError

    def on_glitch(self, what: str = "") -> None:
        """Count and log a frame without effect."""
        raise NotImplementedError

    def refused(self, reason: Reason) -> None:
        """Count a refusal."""
        raise NotImplementedError

    def abandon(self, stream: Stream, code: int, text: str) -> None:
        """Notify the receiver that its stream was ended by the peer, a fault or the loss of the connection."""
        raise NotImplementedError

    def on_headers(self, sid: int, block: bytes, end: bool) -> None:
        """Handle a header block."""
        raise NotImplementedError

    def is_idle(self, sid: int) -> bool:
        """Return True if the stream has not been opened, so that no frame may arrive for it yet."""
        raise NotImplementedError

    def close(self, code: int = NO_ERROR, debug: str = "") -> None:
        """Close the connection with GOAWAY."""
        raise NotImplementedError

    # Lifecycle of streams

    def add(self, sid: int, receiver: object) -> Stream:
        """Create a stream for `receiver`; it exists until `forget`."""
        stream = self.streams[sid] = Stream(sid, receiver, self.initial_window, self.limits.stream_window)
        return stream

    def forget(self, sid: int) -> None:
        """Release a stream whose receiver is done; reset it if either side is still open."""
        stream = self.streams.pop(sid, None)
        if stream is None:
            return
        if not self.closed:
            if stream.tail:
                stream.finished = True
                self.streams[sid] = stream  # only the last bytes of its response remain to be sent
                return
            if not stream.local_closed:
                self.writer.put(frames.rst_stream(sid, CANCEL))
            elif not stream.remote_closed:
                self.writer.put(frames.rst_stream(sid, self.early_end))
        if not self.streams:
            self.quiet_since = trio.current_time()
            self.quiet.announce()
            if self.draining and not self.accepting:
                self.close()

    def reset(self, sid: int, code: int) -> None:
        """Reset a stream from this side, without notifying its receiver."""
        stream = self.streams.get(sid)
        if stream is not None and not (stream.local_closed and stream.remote_closed):
            self._mark_closed(stream)
            self.writer.put(frames.rst_stream(sid, code))

    def abandon_all(self) -> None:
        """Abandon all open streams because the connection is lost."""
        for stream in tuple(self.streams.values()):
            if not (stream.local_closed and stream.remote_closed):
                self._mark_closed(stream)
                self.abandon(stream, REFUSED_STREAM, "the connection was lost")
        self._waiting.unpark_all()

    def stream_fault(self, sid: int, fault: StreamFault) -> None:
        """Count a fault of the peer, reset its stream and notify the receiver."""
        self.refused(fault.reason)
        stream = self.streams.get(sid)
        if stream is None:
            self.writer.put(frames.rst_stream(sid, fault.code))
        elif not (stream.local_closed and stream.remote_closed):
            self.writer.put(frames.rst_stream(sid, fault.code))
            self._mark_closed(stream)
            self.abandon(stream, fault.code, fault.text)

    def _mark_closed(self, stream: Stream) -> None:
        stream.local_closed = stream.remote_closed = True
        stream.tail = b""
        stream.wake()
        if stream.finished:
            self.forget(stream.sid)

    # Receiving

    def on_data(self, sid: int, data: bytes, flow: int, end: bool) -> None:
        """Count bytes against the connection's window and pass them to `receive`."""
        self.receive_window -= flow
        if self.receive_window < 0:
            raise ConnectionFault(FLOW_CONTROL_ERROR, "flow control", "more than the connection's window")
        self.receive_owed += flow
        self.receive(sid, data, flow, end)

    def receive(self, sid: int, data: bytes, flow: int, end: bool) -> None:
        """Pass bytes, already counted against the connection's window, to the receiver of their stream."""
        stream = self.streams.get(sid)
        if stream is None:
            self.on_stray_data(sid, data, flow, end)
            return
        if stream.remote_closed:
            self.on_frame_after_end(stream, "DATA")
            return
        stream.receive_window -= flow
        if stream.receive_window < 0:
            self.stream_fault(sid, StreamFault(FLOW_CONTROL_ERROR, "flow control", "more than the stream's window"))
            return
        if stream.expected is not None:
            stream.expected -= len(data)
            if stream.expected < 0 or (end and stream.expected):
                fault = StreamFault(PROTOCOL_ERROR, "header fields", "content-length does not match the body")
                self.stream_fault(sid, fault)
                return
        if data:
            self.deliver(stream, data, flow)
        else:
            if flow:
                self.consumed(sid, flow)
            if not end:
                self.on_glitch("empty DATA")
        if end and not stream.remote_closed:
            stream.remote_closed = True
            self.deliver_end(stream)

    def on_stray_data(self, sid: int, data: bytes, flow: int, end: bool) -> None:
        """Handle DATA without a stream: ConnectionFault if the stream was never opened, otherwise a glitch."""
        if self.is_idle(sid):
            raise ConnectionFault(PROTOCOL_ERROR, "stream id", f"DATA on stream {sid}, which was not opened")
        self.on_glitch("DATA of a call that has ended")

    def on_frame_after_end(self, stream: Stream, what: str) -> None:
        """Handle DATA or HEADERS on a stream that the peer has ended."""
        if not stream.local_closed:
            self.stream_fault(stream.sid, StreamFault(STREAM_CLOSED, "frame format", f"{what} after the end"))
        self.on_glitch(f"{what} after the end")

    def deliver(self, stream: Stream, data: bytes, flow: int) -> None:
        """Pass bytes to the receiver."""
        stream.receiver.feed(data, flow)

    def deliver_end(self, stream: Stream) -> None:
        """Notify the receiver that the peer has ended its side."""
        stream.receiver.end()

    def give_back_window(self) -> None:
        """Return received bytes to the connection's window once they reach a quarter of it."""
        owed = self.receive_owed
        if owed >= self.limits.connection_window // 4:
            self.receive_owed = 0
            self.receive_window += owed
            self.writer.put(frames.window_update(0, owed))

    def consumed(self, sid: int, n: int) -> None:
        """Return `n` bytes to a stream's window, in portions of at least half the window."""
        stream = self.streams.get(sid)
        if stream is None or stream.remote_closed:
            return
        stream.owed += n
        if stream.owed >= self._stream_credit:
            stream.receive_window += stream.owed
            self.writer.put(frames.window_update(sid, stream.owed))
            stream.owed = 0

    def on_reset(self, sid: int, code: int) -> None:
        """Handle a stream reset by the peer; ConnectionFault if the peer resets too many."""
        stream = self.streams.get(sid)
        if stream is None and self.is_idle(sid):
            raise ConnectionFault(PROTOCOL_ERROR, "stream id", f"RST_STREAM on stream {sid}, which was not opened")
        if not self.resets.take(self.last_read):
            raise ConnectionFault(ENHANCE_YOUR_CALM, "resets", "too many streams reset")
        if stream is None or (stream.local_closed and stream.remote_closed):
            return
        self._mark_closed(stream)
        self.abandon(stream, code, f"the peer reset the stream with {code_name(code)}")

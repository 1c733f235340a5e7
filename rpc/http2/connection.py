"""HTTP/2 connection, common to both sides: lifecycle, reading, settings and keepalive."""

from __future__ import annotations

import logging
import os
from functools import partial
from math import inf
from typing import Final

import trio

from rpc.errors import (
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    INTERNAL_ERROR,
    NO_ERROR,
    PROTOCOL_ERROR,
    ConnectionFault,
    Reason,
    code_name,
)
from rpc.http2.codec import frames
from rpc.http2.codec.frame_reader import FrameReader
from rpc.http2.sending import SendingStreams
from rpc.peer_timeouts import catch_up, silence

_log = logging.getLogger("rpc.http2")
_READ: Final = 65536
_LONG_READ: Final = 262144  # after a read that filled the shorter buffer
_DRAIN_PING: Final = b"draining"
_ALIVE_PING: Final = b"are you?"


class Connection(SendingStreams):
    """HTTP/2 connection whose `run` opens a nursery for its calls.

    A peer that breaks a rule receives GOAWAY with the reason. In every case all calls on the connection are cancelled
    and the transport stream is closed before `run` returns.
    """

    __slots__ = ()

    server: bool = False

    async def run(self, preread: bytes = b"", *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until the peer disconnects or breaks a rule, or `close` is called. Raises only Cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                self.nursery = nursery
                self.last_read = trio.current_time()
                self._begin()
                nursery.start_soon(self.writer.run, name="HTTP/2 writer")
                nursery.start_soon(self._watch, name="HTTP/2 watch")
                task_status.started()
                try:
                    await self._read(preread)
                except ConnectionFault as fault:
                    self._fault(fault)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    pass
                except Exception:
                    _log.exception("reading from %s failed", self.peer.addr())
                    self.writer.put(frames.goaway(self.last_sid, INTERNAL_ERROR))
                finally:
                    self.writer.end()
                self.closed = True
                self.abandon_all()
                nursery.cancel_scope.cancel()
        finally:
            self.closed = True
            self.abandon_all()
            await self.shut()

    def close(self, code: int = NO_ERROR, debug: str = "") -> None:
        """Send GOAWAY, cancel all calls and end `run`. Repeated calls have no effect."""
        if not self.closed:
            self.closed = True
            self.writer.put(frames.goaway(self.last_sid, code, debug))
            self.abandon_all()
            self._stop()

    def drain(self) -> None:
        """Accept no new calls and close once the current calls have ended. Repeated calls have no effect."""
        if self.closed or self.draining:
            return
        self.draining = True
        if not self.streams:
            self.close()
            return
        # RFC 9113 6.8: the first GOAWAY still accepts all streams, so that no request in flight is lost
        self.writer.put(frames.goaway(frames.MAX_ID, NO_ERROR) + frames.ping(_DRAIN_PING, ack=False))

    def refused(self, reason: Reason) -> None:
        """Count a refusal."""
        self.statistics.refused(reason)

    def _stop(self) -> None:
        if self.nursery is not None:
            self.nursery.cancel_scope.cancel()

    def _fault(self, fault: ConnectionFault) -> None:
        self.refused(fault.reason)
        _log.info("closing the connection of %s: %s", self.peer.addr(), fault)
        self.faulty = True
        self.writer.put(frames.goaway(self.last_sid, fault.code, fault.text))

    def _begin(self) -> None:
        limits = self.limits
        settings = frames.settings(
            (
                (frames.MAX_CONCURRENT_STREAMS, limits.max_streams) if self.server else (frames.ENABLE_PUSH, 0),
                (frames.HEADER_TABLE_SIZE, limits.header_table),
                (frames.INITIAL_WINDOW_SIZE, limits.stream_window),
                (frames.MAX_FRAME_SIZE, limits.max_frame),
                (frames.MAX_HEADER_LIST_SIZE, limits.max_header_list),
            )
        )
        extra = limits.connection_window - frames.DEFAULT_WINDOW
        update = frames.window_update(0, extra) if extra > 0 else b""
        self.writer.put((b"" if self.server else frames.PREFACE) + settings + update)

    async def _read(self, preread: bytes) -> None:
        reader = FrameReader(self, self.limits)
        data = preread
        if self.server:
            data = await self._read_preface(preread)
        size = _READ
        writer, limit = self.writer, self.limits.send_limit
        while not self.closed:
            if data:
                self.last_read = trio.current_time()
                await self._handle(reader, data)
                if self.receive_owed:
                    self.give_back_window()
                if writer.size > limit:
                    await writer.space()
            data = b""  # a connection that waits would keep the bytes
            data = await self._receive(size)
            if not data:
                self.peer.farewell.said = True
                return
            size = _LONG_READ if len(data) >= _READ else _READ

    async def _handle(self, reader: FrameReader, data: bytes) -> None:
        """Handle received bytes."""
        reader.feed(data)

    async def _read_preface(self, data: bytes) -> bytes:
        preface = frames.PREFACE
        while len(data) < len(preface):
            if not preface.startswith(data):
                break
            more = await self._receive(_READ)
            if not more:
                return b""
            data += more
        if not data.startswith(preface):
            raise ConnectionFault(PROTOCOL_ERROR, "preface", "not HTTP/2")
        return data[len(preface) :]

    async def _receive(self, size: int) -> bytes:
        if self._fd < 0:
            return bytes(await self.stream.receive_some(size))
        while True:
            await trio.lowlevel.wait_readable(self._fd)
            try:
                return os.read(self._fd, size)
            except BlockingIOError:
                continue
            except OSError as error:
                raise trio.BrokenResourceError("the peer has disconnected") from error

    async def shut(self) -> None:
        """Write queued bytes, then close, each within `limits.close_timeout`. After a fault, let the peer read why."""
        if self.writer.aborted:
            await trio.aclose_forcefully(self.stream)
            return
        with trio.CancelScope(shield=True, deadline=trio.current_time() + self.limits.close_timeout):
            if await self.writer.finish() and self.faulty and isinstance(self.stream, trio.SocketStream):
                # Closing with unread bytes would reset the connection and discard the GOAWAY.
                try:
                    await self.stream.send_eof()
                    while await self._receive(_READ):
                        pass
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    pass
        with trio.CancelScope(shield=True, deadline=trio.current_time() + self.limits.close_timeout):
            try:
                await self.stream.aclose()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        if isinstance(self.stream, trio.SSLStream):
            await trio.aclose_forcefully(self.stream.transport_stream)

    # Deadlines

    async def _watch(self) -> None:
        """Close a connection that does not complete its handshake, is idle for too long, or whose peer has vanished."""
        limits = self.limits
        with trio.move_on_after(limits.handshake_timeout):
            await self.settled.wait()
        await catch_up()
        if not self.settled.is_set():
            self.give_up("handshake timeout")
            return
        if self.nursery is not None:
            self.nursery.start_soon(self.watch_stranger, name="HTTP/2 stranger")
        interval, idle = limits.keepalive_interval, limits.idle_timeout
        if idle != inf and self.nursery is not None:
            self.nursery.start_soon(self._watch_idle, idle, name="HTTP/2 idle")
        while interval != inf:
            await trio.sleep_until(self.last_read + interval)
            ping_time = trio.current_time()
            if self.last_read + interval > ping_time:
                continue
            self.writer.put(frames.ping(_ALIVE_PING, ack=False))
            await silence(partial(self._last_heard, ping_time), lambda: limits.keepalive_timeout)
            if self.last_read < ping_time:
                self.give_up("keepalive timeout")
                return

    def _last_heard(self, ping_time: float) -> float:
        return max(self.last_read, ping_time)

    async def _watch_idle(self, idle: float) -> None:
        while True:
            if self.streams:
                await self.quiet.next.wait()
            since = self.quiet_since
            await trio.sleep_until(since + idle)
            await catch_up()
            if not self.streams and self.quiet_since == since:
                self.refused("idle connection")
                self.close()
                return

    async def watch_stranger(self) -> None:
        """Close a connection that does not authenticate in time. Servers override this."""

    def abort(self) -> None:
        """Close without sending GOAWAY: nothing more is written, and `run` ends at once."""
        self.closed = True
        self.writer.abort()
        self.abandon_all()
        self._stop()

    def give_up(self, reason: Reason) -> None:
        """Count a refusal, log it, and close the connection with `reason` as debug text."""
        self.refused(reason)
        _log.info("closing the connection of %s: %s", self.peer.addr(), reason)
        self.close(NO_ERROR, reason)

    def on_lost(self, reason: Reason | None) -> None:
        """Handle the loss of the peer, reported by the writer; `reason` is set if the peer read too slowly."""
        if reason is not None:
            self.give_up(reason)
        self.closed = True
        self.abandon_all()
        self._stop()

    # Frames about the connection as a whole

    def on_settings(self, pairs: list[tuple[int, int]]) -> None:
        """Apply the peer's settings and acknowledge them."""
        for key, value in pairs:
            if key == frames.INITIAL_WINDOW_SIZE:
                if value > frames.MAX_WINDOW:
                    raise ConnectionFault(FLOW_CONTROL_ERROR, "settings", f"initial window of {value} bytes")
                self.change_initial_window(value)
            elif key == frames.MAX_FRAME_SIZE:
                if not frames.DEFAULT_FRAME <= value < 2**24:
                    raise ConnectionFault(PROTOCOL_ERROR, "settings", f"frames of {value} bytes")
                self.send_frame = min(value, self.limits.max_frame)
            elif key == frames.ENABLE_PUSH:
                if value > 1:
                    raise ConnectionFault(PROTOCOL_ERROR, "settings", f"ENABLE_PUSH of {value}")
            elif key == frames.HEADER_TABLE_SIZE:
                # RFC 7541 4.2: the smallest size must be signalled, even if a larger one followed
                self.shrink_table = self.shrink_table or value < frames.DEFAULT_TABLE
            elif key == frames.MAX_CONCURRENT_STREAMS:
                self.change_max_streams(value)
        self.settled.set()
        self._acknowledge(frames.SETTINGS_ACK)

    def on_settings_ack(self) -> None:
        """Ignore the acknowledgement; nothing waits for it."""

    def on_ping(self, data: bytes, ack: bool) -> None:
        """Acknowledge PING; the acknowledgement of a drain PING completes the drain."""
        if not ack:
            self._acknowledge(frames.ping(data, ack=True))
        elif data == _DRAIN_PING and self.draining:
            # All requests that the peer sent before it received GOAWAY have arrived.
            self.writer.put(frames.goaway(self.last_sid, NO_ERROR))
            self.accepting = False
            if not self.streams:
                self.close()

    def _acknowledge(self, answer: bytes) -> None:
        writer = self.writer
        writer.acks += 1
        if writer.acks > self.limits.max_pending_acks:
            text = f"{writer.acks} PING or SETTINGS without reading the answers"
            raise ConnectionFault(ENHANCE_YOUR_CALM, "pending acknowledgements", text)
        writer.put(answer)

    def on_glitch(self, what: str = "PRIORITY or an unknown frame") -> None:
        """Log and count a frame without effect; ConnectionFault if there are too many, which indicates an attack."""
        _log.debug("ignored from %s: %s", self.peer.address, what)
        if not self.glitches.take(self.last_read):
            raise ConnectionFault(ENHANCE_YOUR_CALM, "useless frames", "too many frames without effect")

    def on_goaway(self, last: int, code: int, debug: bytes) -> None:
        """Handle GOAWAY. Existing streams of a server continue."""
        if code == NO_ERROR:
            # Not logged: a client that follows the log would add a line with each disconnect.
            self.peer.farewell.said = True
        else:
            _log.debug("%s closes the connection: %s, %r", self.peer.address, code_name(code), debug[:80])

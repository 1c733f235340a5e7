"""HTTP/2 frame parser: splits bytes into frames, checks rules that need no stream state, and calls a sink. Pure.

Frames are passed on without allocating an object for each. Every violation detected here ends the connection, which
RFC 9113 section 5.4 also allows for stream errors: no implementation in use breaks these rules by accident.
"""

from __future__ import annotations

import struct
from typing import Final, Protocol

from rpc.errors import ENHANCE_YOUR_CALM, FRAME_SIZE_ERROR, PROTOCOL_ERROR, ConnectionFault
from rpc.http2.codec.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEAD,
    HEADERS,
    MAX_ID,
    PADDED,
    PING,
    PRIORITIZED,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)
from rpc.limits import Limits

_unpack_head = struct.Struct(">HBBBI").unpack_from
_unpack_setting = struct.Struct(">HI").iter_unpack

# Payload length of frame types with a fixed length
_LENGTHS: Final = {PRIORITY: 5, RST_STREAM: 4, PING: 8, WINDOW_UPDATE: 4}


class Sink(Protocol):
    """Callbacks for parsed frames. Any method may raise ConnectionFault."""

    def on_data(self, sid: int, data: bytes, flow: int, end: bool, /) -> None:
        """Handle DATA, without padding; `flow` is its flow-controlled length including padding."""

    def on_headers(self, sid: int, block: bytes, end: bool, /) -> None:
        """Handle a complete header block."""

    def on_reset(self, sid: int, code: int, /) -> None:
        """Handle RST_STREAM."""

    def on_settings(self, pairs: list[tuple[int, int]], /) -> None:
        """Handle SETTINGS, which must be acknowledged."""

    def on_settings_ack(self) -> None:
        """Handle the acknowledgement of our SETTINGS."""

    def on_ping(self, data: bytes, ack: bool, /) -> None:
        """Handle PING or its acknowledgement."""

    def on_goaway(self, last: int, code: int, debug: bytes, /) -> None:
        """Handle GOAWAY."""

    def on_window(self, sid: int, n: int, /) -> None:
        """Handle WINDOW_UPDATE; `n` is at least 1."""

    def on_glitch(self) -> None:
        """Handle an allowed frame without effect: PRIORITY or an unknown type."""


class FrameReader:
    """Parser of the byte stream after the preface, for one sink."""

    __slots__ = ("_block", "_block_size", "_continuations", "_end_stream", "_limits", "_rest", "_sid", "_sink")

    def __init__(self, sink: Sink, limits: Limits) -> None:
        self._sink = sink
        self._limits = limits
        self._rest = b""
        self._sid = 0  # stream with an incomplete header block, or 0
        self._end_stream = False
        self._block: list[bytes] = []
        self._block_size = 0
        self._continuations = 0

    def feed(self, data: bytes, most: int = -1) -> int:
        """Parse all complete frames, but stop before HEADERS beyond the first `most`; -1 means no limit.

        Returns the number of HEADERS, including those before which it stopped: more than `most` if it stopped.
        Raises ConnectionFault if the peer broke a rule; then feed no more data.
        """
        buffer = self._rest + data if self._rest else data
        position, size, seen = 0, len(buffer), 0
        max_frame = self._limits.max_frame
        on_data = self._sink.on_data
        while size - position >= HEAD:
            high, low, kind, flags, sid = _unpack_head(buffer, position)
            length = high << 8 | low
            if length > max_frame:
                raise ConnectionFault(FRAME_SIZE_ERROR, "frame size", f"frame of {length} bytes, limit {max_frame}")
            start = position + HEAD
            if size - start < length:
                break
            position = start + length
            sid &= MAX_ID
            if self._sid and (kind != CONTINUATION or sid != self._sid):
                raise ConnectionFault(PROTOCOL_ERROR, "continuation", "another frame inside a header block")
            if kind == DATA:
                if not sid:
                    raise ConnectionFault(PROTOCOL_ERROR, "stream id", "DATA on stream 0")
                if flags & PADDED:
                    on_data(sid, _unpad(buffer, start, position), length, bool(flags & END_STREAM))
                else:
                    on_data(sid, buffer[start:position], length, bool(flags & END_STREAM))
            elif kind == HEADERS:
                seen += 1
                if seen - 1 == most:
                    position = start - HEAD
                    break
                self._headers(sid, flags, buffer, start, position)
            else:
                self._other(kind, flags, sid, buffer[start:position])
        self._rest = buffer[position:] if position else buffer
        return seen

    def _headers(self, sid: int, flags: int, buffer: bytes, start: int, end: int) -> None:
        if not sid:
            raise ConnectionFault(PROTOCOL_ERROR, "stream id", "HEADERS on stream 0")
        block = _unpad(buffer, start, end) if flags & PADDED else buffer[start:end]
        if flags & PRIORITIZED:
            if len(block) < 5:
                raise ConnectionFault(FRAME_SIZE_ERROR, "frame size", "HEADERS too short for its priority")
            _check_dependency(sid, block)
            block = block[5:]
        if flags & END_HEADERS:
            self._sink.on_headers(sid, block, bool(flags & END_STREAM))
            return
        self._sid = sid
        self._end_stream = bool(flags & END_STREAM)
        self._block = [block]
        self._block_size = len(block)
        self._continuations = 0

    def _continuation(self, sid: int, flags: int, payload: bytes) -> None:
        if not self._sid:
            raise ConnectionFault(PROTOCOL_ERROR, "continuation", "CONTINUATION without HEADERS")
        limits = self._limits
        self._continuations += 1
        self._block_size += len(payload)
        if self._continuations > limits.max_continuations or self._block_size > limits.max_header_block:
            text = f"more than {limits.max_header_block} bytes or {limits.max_continuations} CONTINUATIONs of headers"
            raise ConnectionFault(ENHANCE_YOUR_CALM, "continuation", text)
        self._block.append(payload)
        if flags & END_HEADERS:
            self._sid = 0
            block, self._block = b"".join(self._block), []
            self._sink.on_headers(sid, block, self._end_stream)

    def _other(self, kind: int, flags: int, sid: int, payload: bytes) -> None:
        if kind in _LENGTHS and len(payload) != _LENGTHS[kind]:
            raise ConnectionFault(FRAME_SIZE_ERROR, "frame size", f"frame type {kind} of {len(payload)} bytes")
        if kind in (SETTINGS, PING, GOAWAY):
            if sid:
                raise ConnectionFault(PROTOCOL_ERROR, "stream id", f"frame type {kind} on stream {sid}")
        elif not sid and kind in (PRIORITY, RST_STREAM, CONTINUATION):
            raise ConnectionFault(PROTOCOL_ERROR, "stream id", f"frame type {kind} on stream 0")
        sink = self._sink
        if kind == WINDOW_UPDATE:
            n = int.from_bytes(payload, "big") & MAX_ID
            if not n:
                raise ConnectionFault(PROTOCOL_ERROR, "flow control", "WINDOW_UPDATE of 0 bytes")
            sink.on_window(sid, n)
        elif kind == RST_STREAM:
            sink.on_reset(sid, int.from_bytes(payload, "big"))
        elif kind == PING:
            sink.on_ping(payload, bool(flags & ACK))
        elif kind == SETTINGS:
            self._settings(flags, payload)
        elif kind == CONTINUATION:
            self._continuation(sid, flags, payload)
        elif kind == GOAWAY:
            if len(payload) < 8:
                raise ConnectionFault(FRAME_SIZE_ERROR, "frame size", f"GOAWAY of {len(payload)} bytes")
            last = int.from_bytes(payload[:4], "big") & MAX_ID
            sink.on_goaway(last, int.from_bytes(payload[4:8], "big"), payload[8:])
        elif kind == PUSH_PROMISE:
            raise ConnectionFault(PROTOCOL_ERROR, "frame format", "PUSH_PROMISE, which is not allowed")
        else:
            if kind == PRIORITY:
                _check_dependency(sid, payload)
            sink.on_glitch()

    def _settings(self, flags: int, payload: bytes) -> None:
        if len(payload) % 6 or (flags & ACK and payload):
            raise ConnectionFault(FRAME_SIZE_ERROR, "frame size", f"SETTINGS of {len(payload)} bytes")
        if flags & ACK:
            self._sink.on_settings_ack()
            return
        if len(payload) // 6 > self._limits.max_settings:
            raise ConnectionFault(ENHANCE_YOUR_CALM, "settings", f"SETTINGS with {len(payload) // 6} entries")
        self._sink.on_settings(list(_unpack_setting(payload)))


def _unpad(buffer: bytes, start: int, end: int) -> bytes:
    if start == end:
        raise ConnectionFault(FRAME_SIZE_ERROR, "padding", "padded frame without the length of its padding")
    stop = end - buffer[start]
    if stop <= start:
        raise ConnectionFault(PROTOCOL_ERROR, "padding", "more padding than frame")
    return buffer[start + 1 : stop]


def _check_dependency(sid: int, payload: bytes) -> None:
    if int.from_bytes(payload[:4], "big") & MAX_ID == sid:
        raise ConnectionFault(PROTOCOL_ERROR, "frame format", f"stream {sid} depends on itself")

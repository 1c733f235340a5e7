"""Attacks of hostile peers and the required results, in one table for test_hostile and the documentation.

Rows of HTTP/2 are here, those of HTTP/1.1 and TLS in http1_rows, in the same form; `document` joins them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Literal

from rpc import errors
from rpc.errors import code_name
from rpc.http2.codec import frames, hpack
from rpc.limits import KIB, Limits

LIMITS = Limits(
    max_message=256 * KIB,
    max_buffered=4096 * KIB,
    max_streams=16,
    reset_burst=50,
    glitch_burst=200,
    handshake_timeout=0.5,
    write_stall=0.5,
    window_stall=0.5,
    keepalive_interval=0.4,
    keepalive_timeout=0.3,
    close_timeout=0.3,
)
"""Smaller than in service, so that the tests are short."""

SETTINGS = frames.settings([])
PATH = "/test.v1.EchoService/"
BASE = [(":method", "POST"), (":scheme", "http"), (":path", PATH + "Echo"), (":authority", "x"), ("te", "trailers")]
REQUEST = [*BASE, ("content-type", "application/grpc")]


def head(sid: int, fields: list[tuple[str, str]] = REQUEST, *, end: bool = False) -> bytes:
    return frames.headers(sid, hpack.encode_headers(fields), end=end, max_frame=16384)


def call(name: str) -> list[tuple[str, str]]:
    return [field if field[0] != ":path" else (":path", PATH + name) for field in REQUEST]


def changed(name: str, value: str) -> list[tuple[str, str]]:
    return [(key, value if key == name else old) for key, old in REQUEST]


def data(sid: int, payload: bytes, flags: int = 0) -> bytes:
    return frames.frame(frames.DATA, flags, sid, payload)


def prefix(length: int, flag: int = 0) -> bytes:
    return struct.pack(">BI", flag, length)


@dataclass(frozen=True)
class Answer:
    """The result for the peer: GOAWAY or RST_STREAM with a code, a gRPC or HTTP status, or a closed connection."""

    kind: str  # goaway | reset | grpc-status | :status | closed
    value: int = 0
    instead: tuple[int, ...] = ()  # other allowed statuses: the result depends on how the bytes arrive
    or_closed: bool = False  # the connection may also be closed without an answer

    def allows(self, status: int | None) -> bool:
        """Return whether an HTTP status matches, None for a close without one."""
        if status is None:
            return self.kind == "closed" or self.or_closed
        return self.kind == ":status" and status in (self.value, *self.instead)

    def __str__(self) -> str:
        if self.kind == ":status":
            statuses = " or ".join(map(str, (self.value, *self.instead)))
            return f":status {statuses}{' or closed' if self.or_closed else ''}"
        if self.kind in ("goaway", "reset"):
            return f"{'GOAWAY' if self.kind == 'goaway' else 'RST_STREAM'} {code_name(self.value)}"
        return self.kind if self.kind == "closed" else f"{self.kind} {self.value}"


@dataclass(frozen=True)
class Row:
    """An attack. `reason` is the key of `Statistics.refusals` that counts it, empty if nothing is refused."""

    name: str
    data: bytes
    answer: Answer
    reason: str = ""
    bound: str = ""  # the field of Limits that stops it
    preface: bool = True  # begin with preface and SETTINGS
    reads: bool = True  # False: never reads; the test checks the server's counters instead
    repeat: int = 1  # times `data` is sent
    answers: tuple[str, ...] = field(default=("PING", "SETTINGS"))  # frames that the peer acknowledges
    ends: Literal["waits", "half-closes", "resets"] = "waits"  # what the peer does after the bytes


def goaway(code: int) -> Answer:
    return Answer("goaway", code)


def reset(code: int) -> Answer:
    return Answer("reset", code)


CALM, PROTOCOL, SIZE, FLOW = (
    goaway(errors.ENHANCE_YOUR_CALM),
    goaway(errors.PROTOCOL_ERROR),
    goaway(errors.FRAME_SIZE_ERROR),
    goaway(errors.FLOW_CONTROL_ERROR),
)
COMPRESSION = goaway(errors.COMPRESSION_ERROR)
MALFORMED = reset(errors.PROTOCOL_ERROR)
BOMB = b"\x40" + b"\x04bomb" + b"\x7f\xb9\x1d" + b"x" * 3896 + b"\xbe" * 12_000
INDEXED = b"".join(head(sid) + frames.rst_stream(sid, 8) for sid in range(1, 201, 2))

HTTP2: tuple[Row, ...] = (
    # Connection lifetime
    Row("not HTTP/2 at all", b"\x00" * 64, PROTOCOL, "preface", preface=False),
    Row(
        "half a preface, then silence",
        frames.PREFACE[:10],
        Answer("goaway"),
        "handshake timeout",
        "handshake_timeout",
        preface=False,
    ),
    Row(
        "preface without SETTINGS",
        frames.PREFACE,
        Answer("goaway"),
        "handshake timeout",
        "handshake_timeout",
        preface=False,
    ),
    Row("opens and says nothing", b"", Answer("goaway"), "handshake timeout", "handshake_timeout", preface=False),
    Row("vanishes without closing", b"", Answer("goaway"), "keepalive timeout", "keepalive_interval", answers=()),
    # Frames
    Row("frame of 16 MiB announced", frames.head(0, 0, 1, 2**24 - 1), SIZE, "frame size", "max_frame"),
    Row("DATA on stream 0", data(0, b"x"), PROTOCOL, "stream id"),
    Row("DATA before HEADERS", data(1, b"x"), PROTOCOL, "stream id"),
    Row("RST_STREAM of a stream not begun", frames.rst_stream(1, 8), PROTOCOL, "stream id"),
    Row("WINDOW_UPDATE of a stream not begun", frames.window_update(1, 8), PROTOCOL, "stream id"),
    Row("stream id of the server", head(2), PROTOCOL, "stream id"),
    Row(
        "HEADERS of a skipped stream",
        head(3, call("Hang")) + head(1, end=True),
        reset(errors.STREAM_CLOSED),
        "stream id",
    ),
    Row(
        "DATA of a skipped stream",
        head(3, call("Hang")) + data(1, b"x"),
        reset(errors.STREAM_CLOSED),
        "stream id",
    ),
    Row("PING on a stream", frames.frame(frames.PING, 0, 1, b"x" * 8), PROTOCOL, "stream id"),
    Row("PING of 7 bytes", frames.frame(frames.PING, 0, 0, b"x" * 7), SIZE, "frame size"),
    Row("more padding than frame", data(1, b"\xffab", frames.PADDED), PROTOCOL, "padding"),
    Row("padded frame without length", data(1, b"", frames.PADDED), SIZE, "padding"),
    Row("stream depends on itself", frames.frame(frames.PRIORITY, 0, 3, b"\0\0\0\3\0"), PROTOCOL, "frame format"),
    Row("PUSH_PROMISE", frames.frame(frames.PUSH_PROMISE, 4, 1, b"\0\0\0\2"), PROTOCOL, "frame format"),
    Row(
        "unknown frame types",
        frames.frame(0xF0, 0xFF, 7, b"grease") * 20 + head(1, end=True),
        Answer("grpc-status", 13),
    ),
    # Settings
    Row("SETTINGS with 33 entries", frames.settings([(9, 9)] * 33), CALM, "settings", "max_settings"),
    Row("initial window beyond 2^31-1", frames.settings([(4, 2**31)]), FLOW, "settings"),
    Row("frames smaller than HTTP/2 allows", frames.settings([(5, 100)]), PROTOCOL, "settings"),
    Row("push neither on nor off", frames.settings([(2, 2)]), PROTOCOL, "settings"),
    Row("SETTINGS flood", SETTINGS * 2000, CALM, "pending acknowledgements", "max_pending_acks"),
    Row("PING flood", frames.ping(b"x" * 8, ack=False) * 2000, CALM, "pending acknowledgements", "max_pending_acks"),
    # Header blocks
    Row(
        "CONTINUATION without end",
        frames.frame(1, 0, 1) + frames.frame(9, 0, 1) * 50,
        CALM,
        "continuation",
        "max_continuations",
    ),
    Row(
        "metadata of 40 KiB",
        head(1, [*REQUEST, *((f"x-{number}", "x" * 8192) for number in range(5))], end=True),
        Answer("grpc-status", 8),
        "header list size",
        "max_header_list",
    ),
    Row(
        "metadata of 40 KiB before the path",
        head(1, [*((f"x-{number}", "x" * 8192) for number in range(5)), *REQUEST], end=True),
        reset(errors.ENHANCE_YOUR_CALM),
        "header list size",
        "max_header_list",
    ),
    Row(
        "header block of 70 KiB",
        frames.headers(1, b"x" * 71680, end=True, max_frame=16384),
        CALM,
        "continuation",
        "max_header_block",
    ),
    Row(
        "header block of 20,000 empty fields",
        frames.headers(1, b"\x00\x00\x00" * 20_000, end=True, max_frame=16384),
        CALM,
        "header list size",
        "max_header_list",
    ),
    Row("another frame inside a header block", frames.frame(1, 0, 1) + data(1, b"x"), PROTOCOL, "continuation"),
    Row(
        "HPACK bomb",
        frames.headers(1, BOMB, end=True, max_frame=16384),
        reset(errors.ENHANCE_YOUR_CALM),
        "header list size",
        "max_header_list",
    ),
    Row("HPACK index out of range", frames.frame(1, 5, 1, b"\xff\x7f"), COMPRESSION, "header block"),
    Row(
        "HPACK table larger than allowed",
        frames.frame(1, 5, 1, b"\x3f\xff\xff\x7f"),
        COMPRESSION,
        "header block",
        "header_table",
    ),
    Row("HPACK integer without end", frames.frame(1, 5, 1, b"\xff" * 1000), COMPRESSION, "header block"),
    Row(
        "EOS in a Huffman string", frames.frame(1, 5, 1, b"\x00\x84\xff\xff\xff\xff\x01a"), COMPRESSION, "header block"
    ),
    Row("line break in a value", head(1, [*REQUEST, ("x", "a\r\nb: c")]), PROTOCOL, "header fields"),
    # Requests
    Row("upper-case field name", head(1, [*REQUEST, ("X-Upper", "1")]), MALFORMED, "header fields"),
    Row("connection-specific field", head(1, [*REQUEST, ("connection", "close")]), MALFORMED, "header fields"),
    Row("te other than trailers", head(1, changed("te", "gzip")), MALFORMED, "header fields"),
    Row("pseudo-header field twice", head(1, [(":path", "/"), *REQUEST]), MALFORMED, "header fields"),
    Row("pseudo-header field after others", head(1, [*REQUEST[1:], REQUEST[0]]), MALFORMED, "header fields"),
    Row("unknown pseudo-header field", head(1, [(":evil", "1"), *REQUEST]), MALFORMED, "header fields"),
    Row("request without path", head(1, [*REQUEST[:2], *REQUEST[3:]]), MALFORMED, "header fields"),
    Row(
        "wrong content-length",
        head(1, [*REQUEST, ("content-length", "3")]) + data(1, b"12345"),
        MALFORMED,
        "header fields",
    ),
    Row(
        "content-length that is not a number", head(1, [*REQUEST, ("content-length", "-1")]), MALFORMED, "header fields"
    ),
    Row("GET of a gRPC method", head(1, changed(":method", "GET"), end=True), Answer(":status", 405)),
    Row(
        "gRPC in an unknown encoding",
        head(1, changed("content-type", "application/grpc+json"), end=True),
        Answer(":status", 415),
    ),
    Row("not gRPC", head(1, changed("content-type", "text/html"), end=True), Answer(":status", 415)),
    Row(
        "time limit of a million digits",
        head(1, [*REQUEST, ("grpc-timeout", "9" * 10_000 + "S")]),
        Answer("grpc-status", 13),
    ),
    Row("unknown compression", head(1, [*REQUEST, ("grpc-encoding", "br")]), Answer("grpc-status", 12)),
    Row("metadata that is not base64", head(1, [*REQUEST, ("a-bin", "!")], end=True), Answer("grpc-status", 13)),
    Row(
        "second HEADERS that does not end the request",
        head(1, call("Hang")) + head(1, [("x", "y")]),
        MALFORMED,
        "frame format",
    ),
    # Messages
    Row(
        "message larger than the limit announced",
        head(1) + data(1, prefix(2**32 - 1)),
        Answer("grpc-status", 8),
        "",
        "max_message",
    ),
    Row("truncated message", head(1) + data(1, prefix(10) + b"abc", 1), Answer("grpc-status", 13)),
    Row("compressed without grpc-encoding", head(1) + data(1, prefix(1, 1) + b"x", 1), Answer("grpc-status", 13)),
    Row("not protobuf", head(1) + data(1, prefix(3) + b"\xff\xff\xff", 1), Answer("grpc-status", 13)),
    Row("empty DATA flood", head(1, call("Hang")) + data(1, b"") * 300, CALM, "useless frames", "glitch_burst"),
    Row(
        "PRIORITY flood",
        frames.frame(frames.PRIORITY, 0, 3, b"\0\0\0\1\0") * 300,
        CALM,
        "useless frames",
        "glitch_burst",
    ),
    # Flow control
    Row("window beyond 2^31-1", frames.window_update(0, 2**31 - 1), FLOW, "flow control"),
    Row(
        "stream window beyond 2^31-1",
        head(1, call("Hang")) + frames.window_update(1, 2**31 - 1),
        reset(errors.FLOW_CONTROL_ERROR),
        "flow control",
    ),
    Row("WINDOW_UPDATE by 0", head(1) + frames.window_update(1, 0), PROTOCOL, "flow control"),
    Row(
        "more than the stream's window",
        head(1, call("Unread")) + (data(1, prefix(1000) + b"x" * 1000) * 16) * 70,
        reset(errors.FLOW_CONTROL_ERROR),
        "flow control",
        "stream_window",
    ),
    Row(
        "never opens a window",
        frames.settings([(4, 0)]) + head(1) + data(1, prefix(3) + b"\x0a\x01x", 1),
        reset(errors.CANCEL),
        "slow reader",
        "window_stall",
    ),
    Row(
        "never reads",
        frames.window_update(0, 2**30) + frames.settings([(4, 2**30)]) + head(1, call("Flood")) + data(1, prefix(0), 1),
        Answer("closed"),
        "slow reader",
        "write_stall",
        reads=False,
    ),
    # Streams
    Row(
        "more streams than allowed",
        b"".join(head(sid, call("Hang")) for sid in range(1, 60, 2)),
        reset(errors.REFUSED_STREAM),
        "streams",
        "max_streams",
    ),
    Row("rapid reset", INDEXED, CALM, "resets", "reset_burst"),
)

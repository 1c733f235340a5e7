"""HTTP/2 frame encoding: constants of RFC 9113 and a function for each type of frame that is sent. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD: Final = 9  # bytes before a frame's payload
MAX_ID: Final = 2**31 - 1
MAX_WINDOW: Final = 2**31 - 1

# Types, section 6
DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

# Flags
END_STREAM: Final = 0x01
ACK: Final = 0x01
END_HEADERS: Final = 0x04
PADDED: Final = 0x08
PRIORITIZED: Final = 0x20

# Settings, section 6.5.2, and their defaults
HEADER_TABLE_SIZE: Final = 1
ENABLE_PUSH: Final = 2
MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5
MAX_HEADER_LIST_SIZE: Final = 6
DEFAULT_WINDOW: Final = 65_535
DEFAULT_FRAME: Final = 16_384
DEFAULT_TABLE: Final = 4_096

_pack_head = struct.Struct(">HBBBI").pack
_pack_int = struct.Struct(">I").pack
_pack_setting = struct.Struct(">HI").pack


def head(kind: int, flags: int, sid: int, length: int) -> bytes:
    """Encode the nine-byte header of a frame with `length` bytes of payload."""
    return _pack_head(length >> 8, length & 255, kind, flags, sid)


def frame(kind: int, flags: int, sid: int, payload: bytes = b"") -> bytes:
    """Encode a whole frame."""
    return head(kind, flags, sid, len(payload)) + payload


def headers(sid: int, block: bytes, *, end: bool, max_frame: int) -> bytes:
    """Encode HEADERS, followed by CONTINUATION frames if the block is larger than `max_frame`."""
    flags = END_STREAM if end else 0
    if len(block) <= max_frame:
        return frame(HEADERS, flags | END_HEADERS, sid, block)
    out = [frame(HEADERS, flags, sid, block[:max_frame])]
    for start in range(max_frame, len(block), max_frame):
        last = END_HEADERS if start + max_frame >= len(block) else 0
        out.append(frame(CONTINUATION, last, sid, block[start : start + max_frame]))
    return b"".join(out)


def settings(pairs: Iterable[tuple[int, int]]) -> bytes:
    """Encode SETTINGS with these identifiers and values."""
    return frame(SETTINGS, 0, 0, b"".join(_pack_setting(key, value) for key, value in pairs))


SETTINGS_ACK: Final = frame(SETTINGS, ACK, 0)


def window_update(sid: int, n: int) -> bytes:
    """Encode WINDOW_UPDATE, which returns `n` bytes of window; stream 0 is the connection."""
    return frame(WINDOW_UPDATE, 0, sid, _pack_int(n))


def rst_stream(sid: int, code: int) -> bytes:
    """Encode RST_STREAM, which ends a stream at once."""
    return frame(RST_STREAM, 0, sid, _pack_int(code))


def ping(data: bytes, *, ack: bool) -> bytes:
    """Encode PING with 8 bytes of data, or its acknowledgement."""
    return frame(PING, ACK if ack else 0, 0, data)


def goaway(last: int, code: int, debug: str = "") -> bytes:
    """Encode GOAWAY, which ends a connection. Streams after `last` were not processed; negative counts as 0."""
    return frame(GOAWAY, 0, 0, _pack_int(max(last, 0)) + _pack_int(code) + debug.encode("ascii", "replace"))

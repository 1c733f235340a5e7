"""Limits that a server or client of this package enforces on its peer. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

MAX_UNAUTHENTICATED: Final = 64 * KIB
"""Maximum decompressed bytes of one message to a method callable before logging in; credentials are far smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one connection and of the whole server. Sizes are in bytes, times in seconds, rates per second.

    The defaults suit a computer with 512 MiB of memory. Comments name the source of a value; "nghttp2" means the
    default of that library, the implementation with the longest record against hostile peers.
    """

    # Messages and memory
    max_message: int = 64 * MIB  # one gRPC message, compressed or not; published clients upload a file as one message
    max_buffered: int = 96 * MIB  # received but unread, all calls of one connection: one and a half large messages
    stream_window: int = 1 * MIB  # unread bytes that a peer may send on one stream: 1 Gbit/s at 8 ms
    connection_window: int = 4 * MIB  # the same for all streams together
    send_high_water: int = 256 * KIB  # calls wait to write while more bytes than this are queued
    send_limit: int = 1 * MIB  # with more bytes queued, nothing is read from the peer

    # Headers: RFC 9113 6.5.2 and 10.5.1, RFC 7541 7.3
    max_header_list: int = 32 * KIB  # uncompressed, plus 32 bytes for each field; the worst case takes 10 ms to decode
    max_header_block: int = 64 * KIB  # compressed; a larger block ends the connection
    max_continuations: int = 8  # CONTINUATION frames after HEADERS; nghttp2
    header_table: int = 4 * KIB  # RFC 7541 default

    # Frames
    max_frame: int = 64 * KIB  # payload of a received frame
    max_settings: int = 32  # entries in one SETTINGS frame; nghttp2
    max_pending_acks: int = 1000  # unwritten acknowledgements of PING and SETTINGS; nghttp2

    # Streams
    max_streams: int = 128  # concurrent calls on one connection, plus as many cancelled calls; RFC 9113: at least 100
    late_streams: bool = False  # accept skipped stream ids later; if false they are closed, RFC 9113 5.1.1
    reset_burst: int = 1000  # streams that a peer may reset in a burst; nghttp2
    reset_rate: float = 33.0  # streams that a peer may reset in the long run; nghttp2
    glitch_burst: int = 10_000  # frames without effect in a burst; nghttp2
    glitch_rate: float = 330.0  # frames without effect in the long run; nghttp2

    # Connections
    max_connections: int = 1000  # of one server; close to the default limit of file descriptors (1024)
    handshake_timeout: float = 10.0  # from accept to the end of TLS handshake, preface and first SETTINGS
    authentication_timeout: float = 60.0  # then until the first call with a token, or any call without keys
    write_stall: float = 30.0  # closes a connection whose peer accepts no byte for this long
    window_stall: float = 600.0  # ends a call whose peer grants no window for this long
    idle_timeout: float = inf  # closes a connection without calls after this long
    keepalive_interval: float = 60.0  # sends PING after this long without a byte from the peer; inf disables
    keepalive_timeout: float = 20.0  # then closes if nothing arrives within this time; gRPC's default
    drain_timeout: float = 10.0  # time for running calls to finish at shutdown
    farewell: float = 2.0  # time for pages and WebSockets at shutdown, and for a WebSocket whose peer has left
    close_timeout: float = 2.0  # time to write the last bytes of a connection

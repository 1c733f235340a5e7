"""Every bound a server or client of this package keeps against its peer, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

MAX_UNAUTHENTICATED: Final = 64 * KIB
"""Bytes of one message, decompressed, to a method that is called before signing in: credentials are far smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one connection and of the server as a whole. Sizes are bytes, times seconds, rates per second.

    The defaults suit a computer with 512 MiB of memory. Each has its source beside it; "nghttp2" means the default of
    that library, the implementation with the longest record against hostile peers.
    """

    # Messages and memory
    max_message: int = (
        64 * MIB
    )  # one gRPC message, compressed or not; published clients upload whole files as one message
    max_buffered: int = (
        96 * MIB
    )  # received and not yet read, all calls of one connection: a whole message and half again
    stream_window: int = 1 * MIB  # unread bytes a peer may have under way on one stream: 1 Gbit/s at 8 ms
    connection_window: int = 4 * MIB  # under way on all streams together
    send_high_water: int = 256 * KIB  # a call that writes waits above this many bytes not yet handed to the kernel
    send_limit: int = 1 * MIB  # above this nothing more is read from a peer that does not read

    # Headers: RFC 9113 6.5.2 and 10.5.1, RFC 7541 7.3
    max_header_list: int = 32 * KIB  # uncompressed, 32 bytes more for each field; the worst takes 10 ms to decode
    max_header_block: int = 64 * KIB  # compressed; a larger one ends the connection
    max_continuations: int = 8  # frames after HEADERS; nghttp2
    header_table: int = 4 * KIB  # RFC 7541 default

    # Frames
    max_frame: int = 64 * KIB  # what we let the peer send in one frame
    max_settings: int = 32  # entries in one SETTINGS frame; nghttp2
    max_pending_acks: int = 1000  # answers to PING and SETTINGS not yet written; nghttp2

    # Streams
    max_streams: int = (
        128  # calls at once on one connection, and as many cancelled ones that still clean up; RFC 9113 says >= 100
    )
    late_streams: bool = False  # stream ids that the client passed over may begin late; if not: closed, RFC 9113 5.1.1
    reset_burst: int = 1000  # streams a peer may reset in a burst; nghttp2
    reset_rate: float = 33.0  # and in the long run; nghttp2
    glitch_burst: int = 10_000  # harmless useless frames in a burst; nghttp2
    glitch_rate: float = 330.0  # and in the long run; nghttp2

    # Connections
    max_connections: int = 1000  # of one server: about the file descriptors a process has by default (1024)
    handshake_timeout: float = 10.0  # from accepting the socket to the end of TLS, preface and first SETTINGS
    authentication_timeout: float = 60.0  # from then to the first call with a token; to any call if there are no keys
    write_stall: float = 30.0  # the peer takes no byte for so long: the connection is closed
    window_stall: float = 600.0  # the peer opens no window for a message that waits: the call is ended
    idle_timeout: float = inf  # a connection without calls is closed after so long
    keepalive_interval: float = 60.0  # PING after so long without a byte from the peer; inf: never
    keepalive_timeout: float = 20.0  # and close when nothing comes back; gRPC's default
    drain_timeout: float = 10.0  # calls that run at a shutdown may finish within this
    farewell: float = 2.0  # at a shutdown, for pages and WebSockets; for a WebSocket whose peer has gone, too
    close_timeout: float = 2.0  # the last bytes of a connection that ends

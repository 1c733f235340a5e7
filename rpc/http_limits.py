"""Bounds that the HTTP side of a port keeps against its peers, beside those of `rpc.limits`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Bounds of HTTP/1.1 connections, pages and WebSockets. Sizes are bytes, times seconds, rates bytes per second."""

    # A request's head: nginx and Apache take 8 KiB a line and about 100 fields; tokens make some of ours longer
    max_head: int = 32 * KIB
    max_target: int = 8 * KIB
    max_fields: int = 100
    head_timeout: float = 10.0  # from its first byte to its last, and for the first byte of a new connection
    idle_timeout: float = 75.0  # between two requests; nginx

    # Bodies
    max_body: int = 8 * MIB  # of a request to a page; gRPC messages have their own bound
    body_grace: float = 20.0  # a body may take this long, and in addition
    body_rate: float = 1 * KIB  # as long as its size needs at this rate; Apache's mod_reqtimeout uses about the same
    drain: int = 64 * KIB  # of a body that nobody wanted is read so that the connection can be used again
    linger: float = 1.0  # for the peer to take the last answer before the connection is closed

    # Connections
    max_per_address: int = 200  # at once from one peer address (one /64 for IPv6)

    # WebSockets
    max_websocket_message: int = 1 * MIB
    ping_interval: float = 20.0  # also the time the answer may take

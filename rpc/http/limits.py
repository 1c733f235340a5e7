"""Limits that the HTTP side of a port enforces on its peers, in addition to those of `rpc.limits`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of HTTP/1.1 connections, pages and WebSockets. Sizes in bytes, times in seconds, rates in bytes/second."""

    # Request head: nginx and Apache accept 8 KiB per line and about 100 fields; tokens need longer lines
    max_head: int = 32 * KIB
    max_target: int = 8 * KIB
    max_fields: int = 100
    head_timeout: float = 10.0  # from the first byte of a head to its last
    idle_timeout: float = 75.0  # before each request; nginx

    # Bodies
    max_body: int = 8 * MIB  # of a request to a page; gRPC messages have a separate limit
    files_below: str = ""  # beginning of the paths of pages that receive files; empty if there are none
    max_file: int = 0  # of a request to such a page
    body_grace: float = 20.0  # time for a body, in addition to what its size takes at `body_rate`
    body_rate: float = 1 * KIB  # slowest accepted rate; both are similar to Apache's mod_reqtimeout
    drain: int = 64 * KIB  # bytes of an unread body that are discarded to reuse the connection
    linger: float = 1.0  # time for the peer to read the last response before the connection is closed

    # Connections
    max_per_address: int = 200  # concurrent connections from one peer address (/64 for IPv6)

    # WebSockets
    max_websocket_message: int = 1 * MIB
    ping_interval: float = 20.0  # also the time limit for the answer

    def body_limit(self, path: str) -> int:
        """Return the most bytes of the body of a request to this path."""
        return self.max_file if self.files_below and path.startswith(self.files_below) else self.max_body

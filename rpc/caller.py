"""Connection to a server as a client call uses it; HTTP/2 and data channels implement it."""

from __future__ import annotations

from typing import Protocol

from rpc.carrier import Headers, Peer
from rpc.inbox import Budget
from rpc.limits import Limits


class Caller(Protocol):
    """Call, as seen by its connection."""

    def on_headers(self, headers: Headers, *, end: bool) -> None:
        """Handle the response headers, then the trailers, as header fields of HTTP/2."""

    def feed(self, data: bytes | bytearray, flow: int) -> None:
        """Add bytes of the response body; `flow` is their flow-controlled size."""

    def end(self) -> None:
        """Mark the end of the response."""

    def terminate(self, code: int, text: str) -> None:
        """Handle a call that was reset with an HTTP/2 error code, or a lost connection. Allowed after `end`."""


class CallConnection(Protocol):
    """Connection that carries calls to one server. A call is identified by the number that `begin` returned."""

    limits: Limits
    peer: Peer
    budget: Budget

    async def begin(self, caller: Caller, method: str, headers: Headers, *, end: bool) -> int:
        """Start a call of `method`, waiting until the connection can carry one more; return its number.

        `headers` has the metadata and `grpc-timeout`, encoded as header fields. With `end`, the request has no
        messages. Nothing is passed to `caller` before the next checkpoint. Raises GRPCError (UNAVAILABLE) if the
        connection accepts no more calls.
        """
        ...

    async def send_data(self, sid: int, data: bytes, *, end: bool = False) -> None:
        """Send one message, including its 5-byte prefix, or with `end` and no data only the end of the request.

        Raises StreamTerminatedError if the call has ended.
        """
        ...

    def consumed(self, sid: int, n: int) -> None:
        """Return `n` bytes that the call has read to flow control."""
        ...

    def forget(self, sid: int) -> None:
        """Release a call, and abort it unless it is complete. Ignored for calls that were released before."""
        ...

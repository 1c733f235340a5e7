"""Interface between a call and the transport that carries it, and the identity of the peer."""

from __future__ import annotations

import ipaddress
import itertools
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import trio

if TYPE_CHECKING:
    from rpc.inbox import Budget
    from rpc.limits import Limits
    from rpc.turns import Flow

Headers: TypeAlias = Sequence[tuple[str, str]]
"""Header fields in order; names are lower-case, values are Latin-1 text."""

MutableHeaders: TypeAlias = list[tuple[str, str]]


class Recognize(Protocol):
    """Callback that reports an admitted request to its connection."""

    def __call__(self, *, key: bool) -> None:
        """Report an admitted request; `key` is True if it presented a valid token."""


class Farewell:
    """Record of whether the peer closed the connection itself; silence and network errors do not count."""

    __slots__ = ("__weakref__", "_said", "on_said")

    def __init__(self) -> None:
        self._said = False
        self.on_said: list[Callable[[], None]] = []  # called once, when `said` is set

    @property
    def said(self) -> bool:
        """Whether the peer has closed the connection itself."""
        return self._said

    @said.setter
    def said(self, value: bool) -> None:
        callbacks, self.on_said = (self.on_said, []) if value else ([], self.on_said)
        self._said = value
        for callback in callbacks:
            callback()


@dataclass(frozen=True, slots=True)
class Peer:
    """Remote end of a connection. The methods are those of `grpclib.protocol.Peer`."""

    address: tuple[Any, ...] | str | None = None  # as returned by the socket; a path or "" for a Unix socket
    certificate: Mapping[str, Any] | None = None  # as returned by `ssl.SSLSocket.getpeercert`
    farewell: Farewell = field(default_factory=Farewell, compare=False, repr=False)
    number: int = field(default_factory=itertools.count().__next__, compare=False, repr=False)
    """Number of the connection in this process; each has another one."""

    media: Any = field(default=None, compare=False, repr=False)
    """Streams of the peer connection that carries the calls, see `runtime.parts.video`; None for other carriers."""

    def addr(self) -> tuple[Any, ...] | str | None:
        """Return the socket address of the peer, or None."""
        return self.address

    def cert(self) -> Mapping[str, Any] | None:
        """Return the verified certificate of the peer, or None."""
        return self.certificate

    @property
    def local(self) -> bool:
        """True if the peer is on this computer: loopback or a Unix socket."""
        return isinstance(self.address, str) or (self.ip is not None and self.ip.is_loopback)

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """IP address of the peer without zone and port, or None. An IPv4-mapped address is returned as IPv4."""
        if isinstance(self.address, str) or not self.address:
            return None
        try:
            address = ipaddress.ip_address(str(self.address[0]).partition("%")[0])
        except ValueError:
            return None
        return getattr(address, "ipv4_mapped", None) or address

    @classmethod
    def of(cls, stream: trio.abc.Stream) -> Peer:
        """Return the peer of a socket stream or of a TLS stream after its handshake; for others an empty Peer."""
        certificate = None
        if isinstance(stream, trio.SSLStream):
            try:
                certificate = stream.getpeercert()
            except (ssl.SSLError, trio.NeedHandshakeError, ValueError):
                certificate = None
            stream = stream.transport_stream
        if not isinstance(stream, trio.SocketStream):
            return cls(None, certificate or None)
        try:
            address = stream.socket.getpeername()
        except OSError:
            return cls(None, certificate or None)
        if isinstance(address, bytes):
            address = address.decode("utf-8", "surrogateescape")
        return cls(address, certificate or None)


@dataclass(frozen=True, slots=True)
class Identity:
    """Caller of a method, as established by `ServerCore.authorize`."""

    entity: str  # such as the id of an API key
    kind: str = ""  # type of credentials, such as "api-key"
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)


class Carrier(Protocol):
    """Transport of calls: an HTTP/2 connection, one gRPC-Web exchange over HTTP/1.1, or a data channel.

    `sid` identifies a call of the carrier. Synchronous methods never block; they queue their data. Every method except
    `send_message` ignores calls that have ended.
    """

    @property
    def peer(self) -> Peer:
        """Remote end of the carrier."""
        ...

    @property
    def budget(self) -> Budget:
        """Limit of bytes received but not yet read, shared by all calls of the carrier."""
        ...

    @property
    def flow(self) -> Flow:
        """State of the carrier in the scheduling of turns."""
        ...

    def send_headers(self, sid: int, extra: Headers) -> None:
        """Queue the response headers: status 200, content type and `extra`, the initial metadata."""
        ...

    async def send_message(self, sid: int, data: bytes | bytearray) -> None:
        """Send one message, including its 5-byte prefix, in order, and wait for flow control.

        Not necessarily a checkpoint. Raises grpclib's StreamTerminatedError if the call has ended.
        """
        ...

    def send_trailers(self, sid: int, status: int, extra: Headers, *, headers_sent: bool) -> None:
        """Queue the end of the response: the gRPC status and `extra` (grpc-message, trailing metadata)."""
        ...

    def reset(self, sid: int, code: int) -> None:
        """Abort the call with an HTTP/2 error code."""
        ...

    def consumed(self, sid: int, n: int) -> None:
        """Return `n` flow-controlled bytes, which the call has consumed, to the window."""
        ...

    def forget(self, sid: int) -> None:
        """Release the call, whose task is about to end; its `sid` is not used again."""
        ...


class Caller(Protocol):
    """Client call, as seen by its connection."""

    def on_headers(self, headers: Headers, *, end: bool) -> None:
        """Handle the response headers, then the trailers, as header fields of HTTP/2."""

    def feed(self, data: bytes | bytearray, flow: int) -> None:
        """Add bytes of the response body; `flow` is their flow-controlled size."""

    def end(self) -> None:
        """Mark the end of the response."""

    def terminate(self, code: int, text: str) -> None:
        """Handle a call that was reset with an HTTP/2 error code, or a lost connection. Allowed after `end`."""


class CallConnection(Protocol):
    """Connection that carries the calls of a client to one server: HTTP/2 or a data channel.

    A call is identified by the number that `begin` returned.
    """

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

    async def send_data(self, sid: int, data: bytes | bytearray, *, end: bool = False) -> None:
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


class HttpExchange(Protocol):
    """One HTTP request that is not gRPC, and its response, for any HTTP version.

    Passed to `ServerCore.fallback` in a separate task, which is cancelled when the peer disconnects. The carrier aborts
    the response if the fallback returns or raises before the end of the body.
    """

    http_version: str  # "1.1" or "2"
    method: str
    scheme: str  # "http" or "https"
    authority: str
    path: str  # as sent, including the query
    headers: Headers  # without pseudo-header fields and without host
    peer: Peer
    recognize: Recognize

    async def receive(self) -> bytes:
        """Return the next piece of the request body, empty at its end, and return its bytes to flow control."""
        ...

    async def respond(self, status: int, headers: Headers) -> None:
        """Send the response head; call once."""
        ...

    async def send_body(self, data: bytes, *, end: bool) -> None:
        """Send a piece of the response body and wait for flow control; pass `end=True` with the last piece."""
        ...

"""What a call asks of whatever carries it, and who is at the other end."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import trio

if TYPE_CHECKING:
    from rpc.inbox import Budget
    from rpc.turns import Flow

Headers: TypeAlias = Sequence[tuple[str, str]]
"""Header fields in order; names are lower-case, values are latin-1 text."""

MutableHeaders: TypeAlias = list[tuple[str, str]]


class Recognize(Protocol):
    """Tells a connection that a request of it was let in."""

    def __call__(self, *, key: bool) -> None:
        """`key`: whether the request showed a valid token."""


class Farewell:
    """Whether the other end has closed its connection; silence and errors of the network are no farewell."""

    __slots__ = ("said",)

    def __init__(self) -> None:
        self.said = False


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection. The methods are those of `grpclib.protocol.Peer`."""

    address: tuple[Any, ...] | str | None = None  # as the socket gives it; a path or "" for a Unix socket
    certificate: Mapping[str, Any] | None = None  # as `ssl.SSLSocket.getpeercert` gives it
    farewell: Farewell = field(default_factory=Farewell, compare=False, repr=False)

    def addr(self) -> tuple[Any, ...] | str | None:
        """Socket address of the peer, None if there is none."""
        return self.address

    def cert(self) -> Mapping[str, Any] | None:
        """Verified certificate of the peer, None without one."""
        return self.certificate

    @property
    def local(self) -> bool:
        """True if the peer is on this computer: loopback or a Unix socket."""
        return isinstance(self.address, str) or (self.ip is not None and self.ip.is_loopback)

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The peer's address without zone and port, IPv4 where IPv6 only wraps it; None if it has none."""
        if isinstance(self.address, str) or not self.address:
            return None
        try:
            address = ipaddress.ip_address(str(self.address[0]).partition("%")[0])
        except ValueError:
            return None
        return getattr(address, "ipv4_mapped", None) or address

    @classmethod
    def of(cls, stream: trio.abc.Stream) -> Peer:
        """The peer of a socket stream or of a TLS stream after its handshake; an empty Peer for any other stream."""
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
    """Who makes a call, as far as `ServerCore.authorize` has found out."""

    entity: str  # such as the id of an API key
    kind: str = ""  # type of credentials, such as "api-key"
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)


class Carrier(Protocol):
    """Moves the bytes of calls: an HTTP/2 connection, one gRPC-Web exchange over HTTP/1.1, a data channel.

    `sid` tells the calls of one carrier apart. Methods that are not coroutines never block: they queue what they are
    given. Everything about a call that is already gone is ignored, except `send_message`.
    """

    @property
    def peer(self) -> Peer:
        """Who is at the other end."""
        ...

    @property
    def budget(self) -> Budget:
        """Bound of the bytes received and not yet read, all calls of the carrier together."""
        ...

    @property
    def flow(self) -> Flow:
        """What the carrier has had of turns."""
        ...

    def send_headers(self, sid: int, extra: Headers) -> None:
        """Queue the response headers; status 200 and content type are implied, `extra` is initial metadata."""
        ...

    async def send_message(self, sid: int, data: bytes) -> None:
        """Send one message that already has its 5-byte prefix, in order, and wait for flow control.

        Not necessarily a checkpoint. Raises grpclib's StreamTerminatedError if the call is gone.
        """
        ...

    def send_trailers(self, sid: int, status: int, extra: Headers, *, headers_sent: bool) -> None:
        """Queue the end of the response: gRPC status, `extra` (grpc-message, trailing metadata)."""
        ...

    def reset(self, sid: int, code: int) -> None:
        """Abort the call with an HTTP/2 error code."""
        ...

    def consumed(self, sid: int, n: int) -> None:
        """The call has taken `n` flow-controlled bytes: give window back."""
        ...

    def forget(self, sid: int) -> None:
        """The call's task is about to end; its `sid` will not be used again."""
        ...


class HttpExchange(Protocol):
    """One HTTP request that is not gRPC, and its response, whatever the HTTP version.

    Handed to `ServerCore.fallback` in a task of its own, cancelled when the peer goes away. The carrier aborts the
    response if the fallback returns or raises before it ended the body.
    """

    http_version: str  # "1.1" or "2"
    method: str
    scheme: str  # "http" or "https"
    authority: str
    path: str  # as sent, with its query
    headers: Headers  # without pseudo-header fields and without host
    peer: Peer
    recognize: Recognize

    async def receive(self) -> bytes:
        """The next piece of the request's body; empty when it has ended. Gives flow control back."""
        ...

    async def respond(self, status: int, headers: Headers) -> None:
        """Send the response's head, once."""
        ...

    async def send_body(self, data: bytes, *, end: bool) -> None:
        """Send a piece of the response's body and wait for flow control; `end` with the last one."""
        ...

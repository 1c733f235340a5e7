"""Server side of calls for any carrier: state shared by the connections of a server, and acceptance of requests."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import trio
from grpclib.const import Handler, Status
from grpclib.exceptions import GRPCError

from rpc import metadata as codec
from rpc.access.credential_types import AUTHENTICATE
from rpc.access.forwarded import NO_PROXIES, Proxies
from rpc.access.origins import ANY, Origins
from rpc.carrier import Carrier, Headers, HttpExchange, Identity, MutableHeaders, Peer
from rpc.health import CHECK
from rpc.http.grpc_web import Content, content_of, is_grpc
from rpc.limits import MAX_UNAUTHENTICATED, Limits
from rpc.server_call import ServerCall
from rpc.statistics import Statistics
from rpc.turns import Turns
from support import ChangeSignal

__all__ = [
    "Authorize",
    "Carrier",
    "Closable",
    "Headers",
    "HttpExchange",
    "Identity",
    "Limits",
    "Peer",
    "Refusal",
    "Route",
    "Router",
    "ServerCall",
    "ServerCore",
    "accept",
]

_log = logging.getLogger("rpc.call")
MAX_LOGGED_REFUSALS: Final = 32  # distinct refusals of pages that are logged; clients choose the names in them

Authorize = Callable[[str, codec.Metadata], Identity | None]
"""`authorize(method, metadata)` returns the caller, or None if anonymous; GRPCError refuses. Must not block."""


Offload = Callable[[Identity | None, Callable[[], Any]], Awaitable[Any]]
"""Function that runs work for a caller in a thread and returns its result."""

Fallback = Callable[[HttpExchange], Awaitable[None]]
"""Handler of requests that are not gRPC."""


class Router(Protocol):
    """Lookup of method handlers by path; a mapping of paths is a Router."""

    def get(self, path: str, /) -> Handler | None:
        """Return the handler of `/package.Service/Method`, or None. Must not block."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """Another destination of requests than `ServerCore.router`."""

    router: Router
    max_message: int  # bytes of one request message


class Closable(Protocol):
    """Connection, as seen by the server."""

    def drain(self) -> None:
        """Accept no new calls and close once the current calls have ended. Returns at once; may be called again."""
        ...


@dataclass(eq=False, slots=True)
class ServerCore:
    """State and settings shared by the connections of one server."""

    router: Router
    route: Callable[[Mapping[str, str]], Route | None] | None = None  # by header fields; None: to `router`
    route_fields: tuple[str, ...] = ()  # fields that `route` reads in addition to `:authority`
    authorize: Authorize | None = None  # None admits every call without identity
    keyed: Callable[[], bool] = lambda: False  # whether calls currently need a token; affects admission of connections
    limits: Limits = field(default_factory=Limits)
    proxies: Proxies = NO_PROXIES  # trusted to report the clients of their requests
    origins: Callable[[], Origins] = lambda: ANY  # web pages that may call; read for each browser request
    statistics: Statistics = field(default_factory=Statistics)
    fallback: Fallback | None = None  # handles requests that are not gRPC; without it they get 404
    gateway: Callable[[Fallback], Fallback] | None = None  # wraps `fallback`, handling some requests
    offload: Offload | None = None  # runs slow JSON work of the gateway; None runs it on the event loop
    turns: Turns = field(default_factory=Turns)  # for starting calls and parsing large messages in pieces
    messages: Mapping[str, int] = field(default_factory=dict)  # by method; overrides limits.max_message
    _connections: set[Closable] = field(default_factory=set)
    _changed: ChangeSignal = field(default_factory=ChangeSignal)
    _draining: bool = False
    _logged_refusals: set[str] = field(default_factory=set)  # refusals of pages that were already logged

    @property
    def alone(self) -> bool:
        """True if the server has at most one connection."""
        return len(self._connections) <= 1

    def refuse_origin(self, scheme: str, authority: str, origin: str | None) -> Refusal | None:
        """Return the refusal of a browser request that its origin may not make; None if it is allowed."""
        reason = self.origins().wrong_page(scheme, authority, origin)
        if not reason:
            return None
        self.statistics.refused("origin")
        if reason not in self._logged_refusals and len(self._logged_refusals) < MAX_LOGGED_REFUSALS:
            self._logged_refusals.add(reason)
            _log.warning("refused: %s", reason)
        return Refusal(Status.PERMISSION_DENIED, reason, http=403)

    def admit(self, connection: Closable) -> bool:
        """Register a connection.

        Returns False if there are too many or the server is shutting down; then close it and do not call `leave`.
        """
        if self._draining or len(self._connections) >= self.limits.max_connections:
            self.statistics.refused("connections")
            return False
        self._connections.add(connection)
        self.statistics.connections += 1
        self.statistics.open_connections += 1
        return True

    def leave(self, connection: Closable) -> None:
        """Unregister an admitted connection."""
        self._connections.remove(connection)
        self.statistics.open_connections -= 1
        self._changed.announce()

    async def drain(self) -> None:
        """Shut down gracefully: admit no new connections and wait for calls to end, at most `limits.drain_timeout`.

        Shielded from cancellation. The caller cancels the remaining calls.
        """
        self._draining = True
        for connection in tuple(self._connections):
            connection.drain()
        deadline = trio.current_time() + self.limits.drain_timeout
        with trio.CancelScope(deadline=deadline, shield=True):
            while self._connections:
                await self._changed.next.wait()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Response to a request that does not become a call."""

    status: Status
    message: str
    http: int = 200  # not 200 if the request is not a gRPC request at all
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def headers(self) -> MutableHeaders:
        """Header fields of the response, without `:status`, content type and `grpc-status`."""
        return [*codec.encode_outcome(self.message, None, self.status), *self.extra]


_NOT_POST = Refusal(Status.UNIMPLEMENTED, "gRPC requests use POST", http=405, extra=(("allow", "POST"),))
_UNSUPPORTED_TYPE = Refusal(Status.UNKNOWN, "unsupported content type", http=415)


def accept(
    carrier: Carrier,
    sid: int,
    headers: Headers,
    server: ServerCore,
    *,
    web: bool = False,
    fields: Mapping[str, str] | None = None,
    identity: Identity | None = None,
) -> ServerCall | Refusal:
    """Return a call for a valid, authorized request, otherwise a refusal. Sends nothing and starts no task.

    `headers` includes the pseudo-header fields `:method`, `:path` and, if known, `:authority`. `web` allows gRPC-Web
    content types. `fields` is `dict(headers)` if the carrier already has it. `identity` is the caller if the connection
    has established it; then `authorize` is not asked, and credentials in `headers` have no effect. The carrier must
    call `feed`, `end` and `run` of the returned call.
    """
    if fields is None:
        fields = dict(headers)
    if fields[":method"] != "POST":
        return _NOT_POST
    content = content_of(fields.get("content-type", ""))
    if content is None or (content is not Content.GRPC and not web):
        return _refuse_type(fields)
    path = fields[":path"]
    timeout = None
    if "grpc-timeout" in fields:
        try:
            timeout = codec.decode_timeout(fields["grpc-timeout"])
        except ValueError as error:
            return Refusal(Status.INTERNAL, str(error))
    encoding = fields.get("grpc-encoding")
    if encoding is not None and encoding not in codec.COMPRESSIONS:
        if encoding != "identity":
            text = f"messages compressed with {encoding[:20]!r} are not supported"
            return Refusal(Status.UNIMPLEMENTED, text, extra=(codec.ACCEPT_ENCODING,))
        encoding = None
    route = server.route(fields) if server.route is not None else None
    handler = (server.router if route is None else route.router).get(path)
    if handler is None:
        return Refusal(Status.UNIMPLEMENTED, f"no method {path}")
    metadata = None
    largest = server.messages.get(path, server.limits.max_message) if route is None else route.max_message
    if path in (AUTHENTICATE, CHECK):
        largest = min(largest, MAX_UNAUTHENTICATED)
    if identity is None and server.authorize is not None:
        try:
            metadata = codec.decode(headers)
            identity = server.authorize(path, metadata)
        except GRPCError as error:
            return Refusal(error.status, error.message or error.status.name)
        except Exception:
            _log.exception("authorizing %s failed", path)
            return Refusal(Status.INTERNAL, "internal error; the log of the server has the details")
    call = ServerCall(
        carrier,
        sid,
        path,
        handler,
        headers,
        server,
        timeout=timeout,
        identity=identity,
        metadata=metadata,
        encoding=encoding,
        max_message=largest,
    )
    if encoding is not None:
        call.initial_headers.append(codec.ACCEPT_ENCODING)
    return call


def _refuse_type(fields: Mapping[str, str]) -> Refusal:
    content_type = fields.get("content-type", "")
    if not is_grpc(content_type):
        return _UNSUPPORTED_TYPE
    return Refusal(Status.UNKNOWN, f"content type {content_type[:60]!r} is not supported", http=415)

"""The server's side of a call, whatever carries it: what one server shares, and which requests become calls."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import trio
from grpclib.const import Handler, Status
from grpclib.exceptions import GRPCError

from rpc import metadata as codec
from rpc.auth import AUTHENTICATE
from rpc.carrier import Carrier, Headers, HttpExchange, Identity, MutableHeaders, Peer
from rpc.forwarded import NO_PROXIES, Proxies
from rpc.health import CHECK
from rpc.limits import MAX_UNAUTHENTICATED, Limits
from rpc.origins import ANY, Origins
from rpc.server_call import ServerCall
from rpc.statistics import Statistics
from rpc.turns import Turns
from rpc.web import Content, content_of, is_grpc

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
    "Router",
    "ServerCall",
    "ServerCore",
    "accept",
]

_log = logging.getLogger("rpc.call")
MAX_TURNED_AWAY: Final = 32  # kinds of refused pages that the log tells of: their names are anybody's words

Authorize = Callable[[str, codec.Metadata], Identity | None]
"""`authorize(method, metadata)`: who calls, None if nobody in particular. GRPCError refuses. Must not block."""


Aside = Callable[[Identity | None, Callable[[], Any]], Awaitable[Any]]
"""Carries out work for a caller, in a thread, and returns what that does."""

Fallback = Callable[[HttpExchange], Awaitable[None]]
"""Answers a request that is not gRPC."""


class Router(Protocol):
    """Finds the handler of a method; any mapping of paths does."""

    def get(self, path: str, /) -> Handler | None:
        """The handler of `/package.Service/Method`, None if there is none. Must not block."""
        ...


class Closable(Protocol):
    """A connection as the whole server sees it."""

    def drain(self) -> None:
        """Accept no new call and close once the present ones have ended. Returns at once; may be called twice."""
        ...


@dataclass(eq=False, slots=True)
class ServerCore:
    """What the connections of one server share."""

    router: Router
    authorize: Authorize | None = None  # None: every call is let in, without identity
    keyed: Callable[[], bool] = lambda: False  # whether calls need a token now; connections without are then strangers
    limits: Limits = field(default_factory=Limits)
    proxies: Proxies = NO_PROXIES  # that are believed about whose calls they pass on
    origins: Callable[[], Origins] = lambda: ANY  # which web pages may call, asked for each request of a browser
    statistics: Statistics = field(default_factory=Statistics)
    fallback: Fallback | None = None  # for requests that are not gRPC; None answers 404
    gateway: Callable[[Fallback], Fallback] | None = None  # answers before `fallback` does, or leaves it to it
    aside: Aside | None = None  # for JSON of the gateway that takes long; None: on the event loop
    turns: Turns = field(default_factory=Turns)  # of connections, to begin calls and to parse pieces of large messages
    messages: Mapping[str, int] = field(default_factory=dict)  # bytes of one, for methods other than limits.max_message
    _connections: set[Closable] = field(default_factory=set)
    _changed: trio.Event = field(default_factory=trio.Event)
    _draining: bool = False
    _turned_away: set[str] = field(default_factory=set)  # pages, of which the log speaks once

    @property
    def alone(self) -> bool:
        """Whether there is one connection and nobody else to wait for."""
        return len(self._connections) <= 1

    def turn_away(self, scheme: str, authority: str, origin: str | None) -> Refusal | None:
        """The refusal of a request from a browser that a web page may not make; None if it may."""
        reason = self.origins().wrong_page(scheme, authority, origin)
        if not reason:
            return None
        self.statistics.refused("origin")
        if reason not in self._turned_away and len(self._turned_away) < MAX_TURNED_AWAY:
            self._turned_away.add(reason)
            _log.warning("refused: %s", reason)
        return Refusal(Status.PERMISSION_DENIED, reason, http=403)

    def admit(self, connection: Closable) -> bool:
        """Count a connection in. False if there are too many or the server shuts down: close it, without `leave`."""
        if self._draining or len(self._connections) >= self.limits.max_connections:
            self.statistics.refused("connections")
            return False
        self._connections.add(connection)
        self.statistics.connections += 1
        self.statistics.open_connections += 1
        return True

    def leave(self, connection: Closable) -> None:
        """Count a connection out that `admit` has let in."""
        self._connections.remove(connection)
        self.statistics.open_connections -= 1
        self._changed.set()
        self._changed = trio.Event()

    async def drain(self) -> None:
        """Shut down gracefully: admit nothing new, return when the calls have ended or after `limits.drain_timeout`.

        Shielded, hence bounded by that limit only. The caller cancels what is left.
        """
        self._draining = True
        for connection in tuple(self._connections):
            connection.drain()
        deadline = trio.current_time() + self.limits.drain_timeout
        with trio.CancelScope(deadline=deadline, shield=True):
            while self._connections:
                await self._changed.wait()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that does not become a call, and the answer."""

    status: Status
    message: str
    http: int = 200  # other than 200 for what is not a gRPC request at all
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def headers(self) -> MutableHeaders:
        """Header fields of the answer besides `:status`, content type and `grpc-status`."""
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
) -> ServerCall | Refusal:
    """Decide whether a request becomes a call. Sends nothing and starts nothing.

    `headers` has the pseudo-header fields `:method` and `:path`. `web` says that the carrier speaks gRPC-Web, with or
    without gRPC. `fields` is `dict(headers)` if the carrier has it already. A call that is returned waits for `feed`,
    `end` and `run`.
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
    if encoding is not None and encoding != "gzip":
        if encoding != "identity":
            text = f"messages compressed with {encoding[:20]!r} are not supported"
            return Refusal(Status.UNIMPLEMENTED, text, extra=(codec.ACCEPT_ENCODING,))
        encoding = None
    handler = server.router.get(path)
    if handler is None:
        return Refusal(Status.UNIMPLEMENTED, f"no method {path}")
    identity = metadata = None
    largest = server.messages.get(path, server.limits.max_message)
    if path in (AUTHENTICATE, CHECK):
        largest = min(largest, MAX_UNAUTHENTICATED)
    if server.authorize is not None:
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

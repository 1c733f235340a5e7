"""Server port for gRPC, gRPC-Web, web pages and WebSockets over HTTP/1.1 and HTTP/2, with or without TLS.

The first bytes of a connection identify its protocol. A port without TLS answers a TLS ClientHello at once in plain
text, because clients that probe for TLS would otherwise wait for a timeout. A port with TLS answers a plain-text
client with an error.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import trio

from rpc.access.admission import Admission, ConnectionPlace
from rpc.call import ServerCore
from rpc.carrier import Peer
from rpc.http.asgi import ASGIApp, fallback
from rpc.http.limits import HttpLimits
from rpc.http.wire import Wire
from rpc.http2.server import serve_http2

if TYPE_CHECKING:
    from rpc.network.tls import Context


class WireProtocol(Enum):
    """Protocol at the start of a connection."""

    TLS = "tls"
    HTTP1 = "http/1.1"
    HTTP2 = "h2"


_log = logging.getLogger("rpc.port")
_TLS_HANDSHAKE: Final = 0x16  # RFC 8446 5.1, first byte of a ClientHello's record
_PREFACE: Final = b"PRI "  # no HTTP method starts with these bytes
_BY_ALPN: Final = {"h2": WireProtocol.HTTP2, "http/1.1": WireProtocol.HTTP1}
_NO_TLS: Final = "this port does not speak TLS; use http:// or an insecure connection"
_ONLY_TLS: Final = "this port speaks TLS; use https:// or a secure connection"


def protocol_of(data: bytes) -> WireProtocol | None:
    """Return the protocol that `data`, the first bytes of a connection, starts; None if more bytes are needed."""
    if not data:
        return None
    if data[0] == _TLS_HANDSHAKE:
        return WireProtocol.TLS
    if data[:4] == _PREFACE:
        return WireProtocol.HTTP2
    return None if _PREFACE.startswith(data) else WireProtocol.HTTP1


async def serve(
    listeners: Sequence[trio.abc.Listener[trio.abc.Stream]],
    core: ServerCore,
    *,
    app: ASGIApp | None = None,
    tls: Context | ssl.SSLContext | None = None,
    limits: HttpLimits | None = None,
    task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `listeners` until cancelled.

    On cancellation, stop accepting, let calls finish within `core.limits.drain_timeout`, then close all connections.
    `task_status.started` is called with the listeners, which are closed at the end. The context of `tls` is read for
    each connection. `app` handles requests that are not gRPC; wrap it in `rpc.access.guard.Guard`.
    """
    port = _Port(core, app, tls, limits or HttpLimits())
    async with trio.open_nursery() as nursery:
        connections: trio.Nursery = await nursery.start(port.hold)
        try:
            await trio.serve_listeners(
                port.handle, list(listeners), handler_nursery=connections, task_status=task_status
            )
        finally:
            await core.drain()
            connections.cancel_scope.cancel()
            port.closed.set()


class _Always:
    """TLS context that is never replaced."""

    plain_locally = False

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context


class _Port:
    """Admits connections and serves each one by its protocol."""

    def __init__(
        self, core: ServerCore, app: ASGIApp | None, tls: Context | ssl.SSLContext | None, limits: HttpLimits
    ) -> None:
        self.core = core
        self.app = app
        self.tls = _Always(tls) if isinstance(tls, ssl.SSLContext) else tls
        self.limits = limits
        self.closed = trio.Event()
        max_connections = core.limits.max_connections
        self.admission = Admission(max_connections, limits.max_per_address, core.keyed, core.proxies, core.statistics)
        if app is not None:
            core.fallback = core.gateway(fallback(app, limits)) if core.gateway is not None else fallback(app, limits)

    async def hold(self, *, task_status: trio.TaskStatus[trio.Nursery]) -> None:
        """Keep the connection nursery open after an outer cancellation while calls finish."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                task_status.started(nursery)
                await self.closed.wait()

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Serve one connection; log its failure, which does not affect other connections."""
        peer = Peer.of(stream)
        ticket = await self.admission.enter(peer)
        if ticket is None:
            await trio.aclose_forcefully(stream)
            return
        try:
            with ticket.scope:
                await self._serve(stream, peer, ticket)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except Exception:
            _log.exception("a connection from %s failed", ticket.group)
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)
            self.admission.leave(ticket)

    async def _serve(self, stream: trio.abc.Stream, peer: Peer, ticket: ConnectionPlace) -> None:
        stall = self.core.limits.write_stall
        wire, scheme = Wire(stream, stall=stall), "http"
        context = self.tls.context if self.tls is not None else None
        with trio.move_on_after(self.core.limits.handshake_timeout) as patience:
            if context is not None and await _first_byte(stream, wire) == _TLS_HANDSHAKE:
                secure = trio.SSLStream(_below(stream, wire), context, server_side=True, https_compatible=True)
                await secure.do_handshake()
                peer = Peer(peer.address, secure.getpeercert() or None)
                wire, scheme = Wire(secure, stall=stall), "https"
                protocol = _BY_ALPN.get(secure.selected_alpn_protocol() or "") or await self._sniff(wire)
            else:
                protocol = await self._sniff(wire)
        if patience.cancelled_caught:
            self.core.statistics.refused("handshake timeout")
        elif protocol is WireProtocol.TLS or (protocol and scheme == "http" and not self._may_be_plain(context, peer)):
            await self._refuse(wire, _NO_TLS if context is None else _ONLY_TLS)
        elif protocol is WireProtocol.HTTP2:
            below, preread = wire.release()
            await serve_http2(below, self.core, preread=preread, scheme=scheme, ticket=ticket, peer=peer)
        elif protocol is WireProtocol.HTTP1:
            from rpc.http1.connection import Http1Connection  # 11 ms; not every machine has a browser

            http1 = Http1Connection(
                wire, self.core, peer=peer, scheme=scheme, app=self.app, limits=self.limits, ticket=ticket
            )
            await http1.run()

    def _may_be_plain(self, context: ssl.SSLContext | None, peer: Peer) -> bool:
        return context is None or (peer.local and self.tls is not None and self.tls.plain_locally)

    async def _sniff(self, wire: Wire) -> WireProtocol | None:
        """Detect the protocol without consuming its first bytes; None if the peer closes before it is known."""
        data = b""
        while (protocol := protocol_of(data)) is None:
            more = await wire.receive_some()
            if not more:
                return None
            data += more
        wire.push_back(data)
        return protocol

    async def _refuse(self, wire: Wire, text: str) -> None:
        body = f"400 Bad Request: {text}\n".encode()
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\n"
        self.core.statistics.refused("preface")
        await wire.send_all(head.encode("ascii") + b"connection: close\r\n\r\n" + body)
        await wire.linger(self.limits.linger, self.limits.drain)


async def _first_byte(stream: trio.abc.Stream, wire: Wire) -> int | None:
    """Return the first byte without consuming it, None at end of stream.

    A socket is peeked at, so that TLS can run on the socket itself, whose peer address remains available.
    """
    if isinstance(stream, trio.SocketStream):
        try:
            data = await stream.socket.recv(1, socket.MSG_PEEK)
        except OSError as error:
            raise trio.BrokenResourceError from error
    else:
        data = await wire.receive_some()
        wire.push_back(data)
    return data[0] if data else None


def _below(stream: trio.abc.Stream, wire: Wire) -> trio.abc.Stream:
    return stream if isinstance(stream, trio.SocketStream) else wire

"""One port for everything: gRPC, gRPC-Web and pages over both HTTP versions, WebSockets, with or without TLS.

The first bytes of a connection tell what it speaks. A port without TLS answers a TLS hello at once in plain text,
because clients probe for TLS by trying and would otherwise wait until they time out; a port with TLS tells a
plain-text client so.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import trio

from rpc.admission import Admission, Ticket
from rpc.asgi import ASGIApp, fallback
from rpc.call import ServerCore
from rpc.carrier import Peer
from rpc.http2_server import serve_http2
from rpc.http_limits import HttpLimits
from rpc.wire import Wire

if TYPE_CHECKING:
    from rpc.tls import Context


class Speech(Enum):
    """What a connection begins with."""

    TLS = "tls"
    HTTP1 = "http/1.1"
    HTTP2 = "h2"


_log = logging.getLogger("rpc.port")
_TLS_HANDSHAKE: Final = 0x16  # RFC 8446 5.1, first byte of a ClientHello's record
_PREFACE: Final = b"PRI "  # no other method begins so
_CHOSEN: Final = {"h2": Speech.HTTP2, "http/1.1": Speech.HTTP1}  # by ALPN
_NO_TLS: Final = "this port does not speak TLS; use http:// or an insecure connection"
_ONLY_TLS: Final = "this port speaks TLS; use https:// or a secure connection"


def speech_of(data: bytes) -> Speech | None:
    """What `data`, the first bytes of a connection, are; None if more are needed."""
    if not data:
        return None
    if data[0] == _TLS_HANDSHAKE:
        return Speech.TLS
    if data[:4] == _PREFACE:
        return Speech.HTTP2
    return None if _PREFACE.startswith(data) else Speech.HTTP1


async def serve(
    listeners: Sequence[trio.abc.Listener[trio.abc.Stream]],
    core: ServerCore,
    *,
    app: ASGIApp | None = None,
    tls: Context | ssl.SSLContext | None = None,
    limits: HttpLimits | None = None,
    task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; then stop accepting, let calls end within `core.limits.drain_timeout`, close everything.

    `started` is called with the listeners, which are closed at the end. `tls` may give another context to each
    connection. `app` gets what is not gRPC; wrap it in `rpc.guard.Guard`.
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
    """A context that is never replaced."""

    plain_locally = False

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context


class _Port:
    """Tells connections apart and counts them."""

    def __init__(
        self, core: ServerCore, app: ASGIApp | None, tls: Context | ssl.SSLContext | None, limits: HttpLimits
    ) -> None:
        self.core = core
        self.app = app
        self.tls = _Always(tls) if isinstance(tls, ssl.SSLContext) else tls
        self.limits = limits
        self.closed = trio.Event()
        most = core.limits.max_connections
        self.admission = Admission(most, limits.max_per_address, core.keyed, core.proxies, core.statistics)
        if app is not None:
            core.fallback = core.gateway(fallback(app, limits)) if core.gateway is not None else fallback(app, limits)

    async def hold(self, *, task_status: trio.TaskStatus[trio.Nursery]) -> None:
        """Keep the connections' nursery alive while calls end after a cancellation from outside."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                task_status.started(nursery)
                await self.closed.wait()

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Serve one connection; its failure is nobody else's."""
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

    async def _serve(self, stream: trio.abc.Stream, peer: Peer, ticket: Ticket) -> None:
        stall = self.core.limits.write_stall
        wire, scheme = Wire(stream, stall=stall), "http"
        context = self.tls.context if self.tls is not None else None
        with trio.move_on_after(self.core.limits.handshake_timeout) as patience:
            if context is not None and await _first_byte(stream, wire) == _TLS_HANDSHAKE:
                secure = trio.SSLStream(_below(stream, wire), context, server_side=True, https_compatible=True)
                await secure.do_handshake()
                peer = Peer(peer.address, secure.getpeercert() or None)
                wire, scheme = Wire(secure, stall=stall), "https"
                speech = _CHOSEN.get(secure.selected_alpn_protocol() or "") or await self._sniff(wire)
            else:
                speech = await self._sniff(wire)
        if patience.cancelled_caught:
            self.core.statistics.refused("handshake timeout")
        elif speech is Speech.TLS or (speech and scheme == "http" and not self._may_be_plain(context, peer)):
            await self._refuse(wire, _NO_TLS if context is None else _ONLY_TLS)
        elif speech is Speech.HTTP2:
            below, preread = wire.release()
            await serve_http2(below, self.core, preread=preread, scheme=scheme, ticket=ticket)
        elif speech is Speech.HTTP1:
            from rpc.http1 import Http1Connection  # with h11, for the first one

            http1 = Http1Connection(
                wire, self.core, peer=peer, scheme=scheme, app=self.app, limits=self.limits, ticket=ticket
            )
            await http1.run()

    def _may_be_plain(self, context: ssl.SSLContext | None, peer: Peer) -> bool:
        return context is None or (peer.local and self.tls is not None and self.tls.plain_locally)

    async def _sniff(self, wire: Wire) -> Speech | None:
        """Look at the first bytes without taking them; None if the peer goes away before it has said anything."""
        data = b""
        while (speech := speech_of(data)) is None:
            more = await wire.receive_some()
            if not more:
                return None
            data += more
        wire.push_back(data)
        return speech

    async def _refuse(self, wire: Wire, text: str) -> None:
        body = f"400 Bad Request: {text}\n".encode()
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\n"
        self.core.statistics.refused("preface")
        await wire.send_all(head.encode("ascii") + b"connection: close\r\n\r\n" + body)
        await wire.linger(self.limits.linger, self.limits.drain)


async def _first_byte(stream: trio.abc.Stream, wire: Wire) -> int | None:
    """The first byte, left where it is; None at the end. TLS then reads the socket itself, which names the peer."""
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

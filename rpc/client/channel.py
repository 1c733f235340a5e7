"""Client channel: calls to one server over one HTTP/2 connection, opened on demand and reopened after a loss."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol

import trio
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError
from grpclib.metadata import USER_AGENT, Deadline

from rpc import metadata as codec
from rpc.client.call import ClientCall, time_limit
from rpc.client.target import DialTarget
from rpc.http2.client import ClientConnection
from rpc.http2.codec import hpack
from rpc.limits import Limits
from rpc.peer_timeouts import within
from rpc.statistics import Statistics

_COMMON: Final = hpack.encode_headers(
    [("te", "trailers"), ("content-type", "application/grpc"), ("user-agent", USER_AGENT), codec.ACCEPT_ENCODING]
)


class Credentials(Protocol):
    """Source of the header fields that authenticate calls."""

    async def headers(self, channel: Channel) -> Sequence[tuple[str, str]]:
        """Return header fields for a call, such as authorization. May call the server with `credentials=False`."""
        ...

    def rejected(self) -> None:
        """Discard the result of `headers`, because a call with it was answered UNAUTHENTICATED."""
        ...


class Channel:
    """Client channel to one server, compatible with `grpclib.client.Channel` for generated stubs.

    Use it as an async context manager, also again after it was left; leaving it ends the connection and its calls.
    `target` is parsed by `Target.parse`. `connect` may return another stream that is ready for HTTP/2. `headers` are
    sent with each call. A lost connection ends its calls with UNAVAILABLE; the next call opens a new connection.
    """

    def __init__(
        self,
        target: str,
        *,
        tls: ssl.SSLContext | None = None,
        credentials: Credentials | None = None,
        limits: Limits | None = None,
        connect: Callable[[], Awaitable[trio.abc.Stream]] | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.target = DialTarget.parse(target)
        if self.target.tls and tls is None:
            tls = ssl.create_default_context()
            tls.set_alpn_protocols(["h2"])
        self._tls = tls
        self._credentials = credentials
        self.limits = limits or Limits()
        self.statistics = Statistics()
        self._connect = connect
        self._lock = trio.Lock()
        self._failures = 0  # failed attempts to connect
        self._failure = ""
        self._sent_credentials: Sequence[tuple[str, str]] | None = None  # latest credentials, unless they were rejected
        self._manager: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._nursery: trio.Nursery | None = None
        self._closed = False  # after use: a late call gets UNAVAILABLE instead of RuntimeError
        self._connection: ClientConnection | None = None
        self._fixed = hpack.encode_headers(
            [(":method", "POST"), (":scheme", "https" if tls else "http"), (":authority", self.target.authority)]
        )
        self._common = _COMMON + hpack.encode_headers(headers)
        self._blocks: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"Channel({self.target.path or self.target.authority!r})"

    async def __aenter__(self) -> Channel:
        self._closed = False
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        manager, self._manager, self._nursery, self._closed = self._manager, None, None, True
        assert manager is not None
        # Without the error, so that it is not wrapped in a group.
        await manager.__aexit__(None, None, None)

    def close(self) -> None:
        """Close the connection and end its calls; a later call opens a new connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def retire(self) -> None:
        """Close the connection when its calls have ended; a later call opens a new connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.retire()

    def request(
        self,
        name: str,
        cardinality: Cardinality,
        request_type: Any,
        reply_type: Any,
        *,
        timeout: float | None = None,
        deadline: Deadline | None = None,
        metadata: codec.MetadataLike | None = None,
        credentials: bool = True,
    ) -> ClientCall:
        """Return a call of the method `name`; enter it to send the request."""
        timeout = time_limit(timeout, deadline)
        return ClientCall(
            self, name, cardinality, reply_type, metadata=metadata, timeout=timeout, credentials=credentials
        )

    # For calls

    def _request_block(self, method: str) -> bytes:
        block = self._blocks.get(method)
        if block is None:
            block = self._blocks[method] = self._fixed + hpack.encode_header(":path", method) + self._common
        return block

    async def credential_headers(self) -> Sequence[tuple[str, str]]:
        """Return the header fields that the credentials add to a call."""
        if self._credentials is None:
            return ()
        self._sent_credentials = headers = await self._credentials.headers(self)
        return headers

    def rejected(self, headers: Sequence[tuple[str, str]] | None) -> bool:
        """Report that a call with these header fields was UNAUTHENTICATED. True if new ones may be accepted.

        The credentials are notified once, however many concurrent calls were rejected.
        """
        if self._credentials is None or headers is None:
            return False
        if headers == self._sent_credentials:
            self._sent_credentials = None
            self._credentials.rejected()
        return True

    async def connection(self) -> ClientConnection:
        """Return the connection, opening a new one if needed; GRPCError (UNAVAILABLE) if connecting fails.

        Concurrent calls share one attempt. Each attempt is limited to `limits.handshake_timeout`.
        """
        connection = self._connection
        if connection is not None and connection.usable:
            return connection
        failures = self._failures
        async with self._lock:
            connection = self._connection
            if connection is not None and connection.usable:
                return connection
            if self._nursery is None:
                if self._closed:
                    raise GRPCError(Status.UNAVAILABLE, f"the channel to {self._name} was closed")
                raise RuntimeError("the channel is not open: use it with `async with`")
            if failures == self._failures:  # otherwise, the attempt that this call waited for has failed
                try:
                    opening = partial(self._open, self._nursery)
                    connection = self._connection = await within(self.limits.handshake_timeout, opening)
                    return connection
                except trio.TooSlowError:
                    self._failure = "no answer"
                except (OSError, trio.BrokenResourceError) as error:
                    cause = error.__cause__ if isinstance(error, trio.BrokenResourceError) else error
                    self._failure = str(cause or error)
                self._failures += 1
        raise GRPCError(Status.UNAVAILABLE, f"cannot connect to {self._name}: {self._failure}")

    async def lost(self) -> None:
        """Connect if necessary and wait until the connection has ended. GRPCError as from `connection`."""
        await (await self.connection()).ended.wait()

    @property
    def _name(self) -> str:
        return self.target.path or self.target.authority

    async def _open(self, nursery: trio.Nursery) -> ClientConnection:
        stream = await self._dial()
        if self._nursery is not nursery:  # closed in the meantime
            await trio.aclose_forcefully(stream)
            raise GRPCError(Status.UNAVAILABLE, f"the channel to {self._name} was closed")
        connection = ClientConnection(stream, self.limits, self.statistics, self._request_block)
        await nursery.start(connection.run, name=f"HTTP/2 connection to {self._name}")
        self.statistics.connections += 1
        if self._nursery is not nursery:
            connection.close()
        return connection

    async def _dial(self) -> trio.abc.Stream:
        if self._connect is not None:
            return await self._connect()
        target = self.target
        stream: trio.abc.Stream
        if target.path:
            stream = await trio.open_unix_socket(target.path)
        else:
            stream = await trio.open_tcp_stream(target.host, target.port)
        if self._tls is None:
            return stream
        secure = trio.SSLStream(stream, self._tls, server_hostname=target.host, https_compatible=True)
        try:
            await secure.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return secure

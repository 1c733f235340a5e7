"""Calls from the cloud: opens WebSockets on which this machine is the HTTP/2 server, at the request of the cloud.

Each such connection carries the calls of one caller, whom the cloud has authenticated and names in the request. The
requests come over the push channel, so that only the cloud can make them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
import trio

from rpc import Identity
from rpc.client import byte_stream
from uplink import CloudAddress, CloudUnavailable, Headers, TokenRefused, connected, token_headers

MOST: Final = 64  # connections for calls at once; the cloud opens fewer
WAITING: Final = 16  # requests that are not begun yet

_log = structlog.get_logger("rdk.networking")

Serve = Callable[[trio.abc.Stream, Identity], Awaitable[None]]
"""Serves the calls of a caller on a stream until it ends."""


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """A request of the cloud for a connection."""

    id: str
    caller: Identity
    address: str  # URL of the replica that waits; "" for the address of the cloud

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> ConnectionRequest:
        """Read a request from JSON. ValueError or TypeError if it is not valid."""
        caller, address = message["caller"], message.get("address", "")
        texts = (message["id"], caller["type"], caller["id"], address)
        if not all(isinstance(text, str) for text in texts) or not all(texts[:3]):
            raise TypeError("a request for calls without id or caller")
        if address and urlsplit(address).scheme not in ("http", "https"):
            raise ValueError(f"the address of a replica is not a URL: {address[:60]!r}")
        return cls(message["id"], Identity(caller["id"], caller["type"]), address)


class CloudCalls:
    """Requests from the push channel, and the task that serves them."""

    def __init__(self, address: CloudAddress) -> None:
        self._address = address
        self._token: Headers | None = None  # of the last login: a caller waits for each round trip
        self._send, self._receive = trio.open_memory_channel[ConnectionRequest](WAITING)

    def requested(self, message: Mapping[str, Any]) -> None:
        """Accept a request; ValueError, TypeError or KeyError if it is not valid. Dropped if too many wait."""
        try:
            self._send.send_nowait(ConnectionRequest.of(message))
        except trio.WouldBlock:
            _log.warning("too many requests of the cloud for calls at once; one was ignored")

    async def run(self, serve: Serve) -> None:
        """Serve requests until cancelled."""
        places = trio.Semaphore(MOST)

        async def serve_request(request: ConnectionRequest) -> None:
            try:
                await self._serve(request, serve)
            finally:
                places.release()

        async with trio.open_nursery() as nursery:
            async for request in self._receive:
                await places.acquire()
                nursery.start_soon(serve_request, request, name=f"calls of {request.caller.entity}")

    async def _serve(self, request: ConnectionRequest, serve: Serve) -> None:
        try:
            try:
                await self._connect(request, serve)
            except TokenRefused:
                self._token = None
                await self._connect(request, serve)
        except (CloudUnavailable, OSError) as error:
            _log.warning(
                "a connection for calls through the cloud failed", caller=request.caller.entity, reason=str(error)
            )

    async def _connect(self, request: ConnectionRequest, serve: Serve) -> None:
        url = self._address.serve_url(request.id, request.address)
        async with connected(self._address, url, sign_in=self._sign_in) as socket:
            await serve(byte_stream(socket), request.caller)

    async def _sign_in(self) -> Headers:
        if self._token is None:
            self._token = await token_headers(self._address)
        return self._token

"""Router of calls to machines: any call whose authority or metadata names a machine is forwarded to it.

Calls of `proto.rpc` (authentication and signalling) are answered by the cloud itself, because clients make them before
and outside of calls to a machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from grpclib.const import Cardinality, Handler
from grpclib.exceptions import GRPCError

from cloud.services.common.base import Cloud
from cloud.services.reverse.forwarding import forward
from cloud.services.reverse.opening import connection_for, record
from cloud.store.turns import working_for
from rpc import Fallback, HttpExchange, Peer, Route, ServerCore
from rpc.access import AUTHENTICATE
from rpc.http import plain_response
from rpc.server import AUTH, AuthRouter, http_and_json
from schema import ErrorKind, MachineError

PART: Final = "machine-part"
"""Metadata key: the id of the part to call."""

CLOUD_SERVICES: Final = ("viam.app.", "machine.cloud.", "proto.rpc.")
OWN: Final = "/proto.rpc."
CALLS_OF_KEY: Final = 100  # calls in progress of one key to one machine
CALLS_OF_MACHINE: Final = 1000  # calls in progress of all callers to one machine


class MachineCalls:
    """The destination of requests that name a machine."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._sign_in = AuthRouter({}, _HostEntities(cloud))

    def route(self, fields: Mapping[str, str]) -> Route | None:
        """Return where a request with these header fields goes; see ServerCore.route."""
        path = fields.get(":path", "")
        if path.startswith(OWN) and path != AUTHENTICATE:
            return None
        part = fields.get(PART) or self._cloud.hosts.part_of(fields.get(":authority", ""))
        return None if part is None else Route(_Methods(self, part), self._cloud.limits.message)

    def handler(self, part: str, path: str) -> Handler | None:
        """Return the handler of a method of a part."""
        if path == AUTHENTICATE:
            return self._sign_in.get(path)
        return Handler(partial(self._call, part), Cardinality.STREAM_STREAM, bytes, bytes)

    def gateway(self, core: ServerCore, own: Fallback) -> Fallback:
        """Return a fallback for calls with JSON to machines, which passes requests that name none to `own`."""
        machines = http_and_json(core, _names, _no_pages)

        async def answer(exchange: HttpExchange) -> None:
            fields = {":authority": exchange.authority, **dict(exchange.headers)}
            await (own if self.route(fields) is None else machines)(exchange)

        return answer

    async def _call(self, part: str, stream: Any) -> None:
        cloud = self._cloud
        author = await cloud.authenticator.confirmed(stream.identity)
        hold = cloud.openings.hold
        with hold(f"the key {author.name} to machine {part}", CALLS_OF_KEY), hold(f"machine {part}", CALLS_OF_MACHINE):
            with working_for(await cloud.homes.of(cloud.store, author)):
                reverse = await connection_for(cloud, author, part)
                await record(cloud, author, part, stream.method)
            connection = reverse.connection
            reverse.used_by(stream.carrier_peer.farewell)
            if connection is None:
                raise reverse.refusal or lost(reverse.name)
            try:
                await forward(stream, connection)
            except* GRPCError as group:
                error: BaseException = group
                while isinstance(error, BaseExceptionGroup):
                    error = error.exceptions[0]
                if not connection.usable:
                    raise reverse.refusal or lost(reverse.name) from None
                raise error from None


def _names() -> Iterator[str]:
    """Yield the services of machines whose calls are published."""
    from rpc.api import SERVICES

    return (name for name in SERVICES if name == AUTH or not name.startswith(CLOUD_SERVICES))


async def _no_pages(exchange: HttpExchange) -> None:
    fields, body = plain_response(
        "pages of machines are not available through the cloud: use the cloud's pages, or call the API"
    )
    await exchange.respond(404, fields)
    await exchange.send_body(body, end=True)


class _Methods:
    """Router of all methods of one part."""

    __slots__ = ("_calls", "_part")

    def __init__(self, calls: MachineCalls, part: str) -> None:
        self._calls = calls
        self._part = part

    def get(self, path: str, /) -> Handler | None:
        """Return the handler of `/package.Service/Method`, or None."""
        return self._calls.handler(self._part, path)


class _HostEntities:
    """Login at the host name of a machine, where clients use the host name as the entity of a secret."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def sign_in(self, entity: str, type: str, payload: str, *, peer: Peer) -> str:  # noqa: A002 - wire name
        """Return a token for valid credentials."""
        part = self._cloud.hosts.part_of(entity)
        return await self._cloud.authenticator.sign_in(part or entity, type, payload, peer=peer)


def lost(name: str) -> MachineError:
    """Return the error for a connection to a machine that was lost."""
    return MachineError(
        f"the connection to machine {name} was lost",
        kind=ErrorKind.UNAVAILABLE,
        remedy="try again; if it persists, check the machine's network",
    )

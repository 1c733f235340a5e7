"""One call to a machine, over the connection that it opens, made by the cloud for a page."""

from __future__ import annotations

from collections.abc import Sequence

import trio
from grpclib.const import Cardinality
from grpclib.exceptions import GRPCError

from cloud.services.reverse.calls import lost
from cloud.work.reverse import Reverse
from rpc import CallConnection, Statistics, to_machine_error
from rpc.api import Raw
from rpc.client import ClientCall
from rpc.http2 import ClientConnection
from schema import ErrorKind, MachineError


def usable(reverse: Reverse) -> ClientConnection:
    """Return the connection. MachineError if it is lost already, or refused."""
    if reverse.connection is None:
        raise reverse.refusal or lost(reverse.name)
    return reverse.connection


async def unary(reverse: Reverse, method: str, message: bytes, limit: float, remedy: str = "try again") -> bytes:
    """Return the reply of a machine.

    MachineError: UNAVAILABLE if the connection is lost, TIMEOUT with this `remedy` without an answer within `limit`
    seconds, and the machine's own error.
    """
    connection = usable(reverse)
    reply = b""
    try:
        with trio.fail_after(limit):
            reply = await _call(connection, method, message)
    except GRPCError as error:
        if not connection.usable:
            raise reverse.refusal or lost(reverse.name) from None
        raise to_machine_error(error) from None
    except trio.TooSlowError:
        raise MachineError(
            f"machine {reverse.name} has not answered within {limit:g} s", kind=ErrorKind.TIMEOUT, remedy=remedy
        ) from None
    return reply


async def _call(connection: ClientConnection, method: str, message: bytes) -> bytes:
    call = ClientCall(
        _Opener(connection), method, Cardinality.UNARY_UNARY, Raw, metadata=None, timeout=None, credentials=False
    )
    reply: Raw | None = None
    async with call:
        await call.send_message(Raw(message), end=True)
        reply = await call.recv_message()
    return bytes(reply or b"")


class _Opener:
    """The part of a channel that a call needs, for a connection that is open."""

    def __init__(self, connection: ClientConnection) -> None:
        self.statistics = Statistics()
        self._connection = connection

    async def credential_headers(self) -> Sequence[tuple[str, str]]:
        return ()

    def rejected(self, _: Sequence[tuple[str, str]] | None) -> bool:
        return False

    async def connection(self) -> CallConnection:
        return self._connection

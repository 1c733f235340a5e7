"""Forwarding of one call to another server, message by message, without parsing the messages."""

from __future__ import annotations

from typing import Final

import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc import Headers, MutableHeaders, ServerCall
from rpc import metadata as codec
from rpc.client import Response
from rpc.http2 import ClientConnection

NOT_FORWARDED: Final = frozenset(
    {
        *("authorization", "cookie", "host", "machine-part", "origin", "referer", "x-forwarded-for"),
        *("content-length", "content-type", "te", "connection"),
        *("grpc-timeout", "grpc-encoding", "grpc-accept-encoding", "grpc-status"),
    }
)
"""Header fields that concern only one of the two connections, and credentials of the caller."""

CONTENT_GRPC: Final = ("application/grpc", "application/grpc+proto")
API_METADATA: Final = ("grpc-", "viam-", "opid")
"""Beginnings of the names of metadata that APIs use."""


async def forward(call: ServerCall, connection: ClientConnection) -> None:
    """Make the same call on `connection`, and answer `call` with its messages, metadata and status.

    Each side is read only as fast as the other accepts messages. The end of `call`, such as its deadline, resets the
    call on `connection`. GRPCError if there is no valid response.
    """
    response = Response()
    headers = forwarded(call.request_headers)
    if call.deadline is not None:
        headers.insert(0, ("grpc-timeout", codec.encode_timeout(call.deadline.time_remaining())))
    sid = await connection.begin(response, call.method, headers, end=False)
    response.attach(connection, sid)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send_requests, call, connection, sid)
            await _answer(call, response)
            nursery.cancel_scope.cancel()
    finally:
        response.discard()
        connection.forget(sid)


async def _send_requests(call: ServerCall, connection: ClientConnection, sid: int) -> None:
    try:
        while (framed := await call.recv_framed()) is not None:
            await connection.send_data(sid, framed)
        await connection.send_data(sid, b"", end=True)
    except StreamTerminatedError:
        pass  # the response says why


async def _answer(call: ServerCall, response: Response) -> None:
    web = dict(call.request_headers).get("content-type", "") not in CONTENT_GRPC
    passed = for_browsers if web else forwarded
    if await response.head() is not None:
        call.initial_headers += passed(response.head_fields)
        await call.send_initial_metadata()
        while (framed := await response.framed()) is not None:
            await call.send_framed(framed)
    await response.trailers()
    fields = dict(response.trailer_fields)
    try:
        status = Status(int(fields.get("grpc-status", "")))
    except ValueError:
        raise GRPCError(Status.UNKNOWN, "the response has no valid grpc-status") from None
    call.send_status(status, passed(response.trailer_fields))


def for_browsers(headers: Headers) -> MutableHeaders:
    """Return the header fields that are passed on to gRPC-Web, where a browser acts on some.

    A machine must not be able to set cookies or policies for the origin of the cloud, so only known names are passed.
    """
    return [field for field in forwarded(headers) if field[0].startswith(API_METADATA) or field[0].endswith("-bin")]


def forwarded(headers: Headers) -> MutableHeaders:
    """Return the header fields that are passed on."""
    return [field for field in headers if field[0][:1] != ":" and field[0] not in NOT_FORWARDED]

"""Receiving side of a client call: headers, messages and status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.metadata import decode_grpc_message

from rpc import metadata as codec
from rpc import status as statuses
from rpc.carrier import Headers
from rpc.inbox import Inbox

if TYPE_CHECKING:
    from rpc.carrier import CallConnection


class Response:
    """Response on one stream, fed by its connection and read by one task."""

    def __init__(self) -> None:
        self._inbox: Inbox | None = None
        self._head: Headers | None = None
        self._trailers: Headers | None = None
        self._error: GRPCError | None = None
        self._head_event = trio.Event()
        self._end_event = trio.Event()

    def attach(self, connection: CallConnection, sid: int) -> None:
        """Bind the response to its stream. Called when the stream opens, before any data can arrive."""
        limits = connection.limits
        self._inbox = Inbox(connection, sid, max_message=limits.max_message, budget=connection.budget, encoding="gzip")

    @property
    def head_fields(self) -> Headers:
        """Header fields of the response, as received; empty before `head` has returned."""
        return self._head or ()

    @property
    def trailer_fields(self) -> Headers:
        """Trailers, as received; empty before `trailers` has returned."""
        return self._trailers or ()

    @property
    def ended(self) -> bool:
        """True once the response has ended or failed."""
        return self._end_event.is_set()

    async def head(self) -> codec.Metadata | None:
        """Wait for and return the initial metadata; None if the response has only a status.

        Raises GRPCError if there is no valid response.
        """
        await self._head_event.wait()
        if self._head is None:
            assert self._error is not None
            raise self._error
        fields = dict(self._head)
        status = fields[":status"]
        if status != "200":
            raise _error_of(fields) or GRPCError(statuses.of_http(status), f"HTTP status {status}")
        content_type = fields.get("content-type", "")
        supported = content_type in ("application/grpc", "application/grpc+proto")
        if not supported and "grpc-status" not in fields:  # grpclib sends refusals without a content type
            raise GRPCError(Status.UNKNOWN, f"content type {content_type[:60]!r} instead of application/grpc")
        if fields.get("grpc-encoding", "identity") not in ("identity", *codec.COMPRESSIONS):
            raise GRPCError(Status.INTERNAL, "the server uses a compression that was not offered")
        return None if self._head is self._trailers else codec.decode(self._head)

    async def message(self) -> bytes | None:
        """Return the next message, None at the end."""
        assert self._inbox is not None
        return await self._inbox.get()

    async def framed(self) -> bytes | bytearray | None:
        """Return the next message with its prefix, None at the end."""
        assert self._inbox is not None
        return await self._inbox.get_framed()

    async def trailers(self) -> codec.Metadata:
        """Wait for the end of the response and return the trailing metadata. GRPCError if the response was cut off."""
        await self._end_event.wait()
        if self._trailers is None:
            assert self._error is not None
            raise self._error
        return codec.decode(self._trailers)

    def failure(self) -> GRPCError | None:
        """Return the error with which the call has ended; None if it is running or ended with OK."""
        if self._error is not None or self._trailers is None:
            return self._error
        fields = dict(self._trailers)
        if fields.get("grpc-status") == "0":
            return None
        return _error_of(fields) or GRPCError(Status.UNKNOWN, "the response has no valid grpc-status")

    def discard(self) -> None:
        """Drop unread and further messages, because the call is over."""
        if self._inbox is not None:
            self._inbox.fail(GRPCError(Status.CANCELLED, "the call has ended"))

    # For the connection

    def on_headers(self, headers: Headers, *, end: bool) -> None:
        """Handle the response headers, then the trailers; one block can be both."""
        if self._head is None:
            if headers[:1] and headers[0][0] != ":status":
                self.terminate(1, "a response without :status")
                return
            self._head = headers
            self._head_event.set()
        elif not end:
            self.terminate(1, "headers in the middle of the response")
            return
        if end:
            self._trailers = headers

    def feed(self, data: bytes | bytearray, flow: int) -> None:
        """Add bytes of the response body; `flow` is their flow-controlled size."""
        assert self._inbox is not None
        self._inbox.feed(data, flow)

    def end(self) -> None:
        """Mark the end of the response."""
        assert self._inbox is not None
        if self._trailers is None and self._error is None:
            self._error = GRPCError(Status.INTERNAL, "the response ended without a status")
        self._inbox.end()
        self._head_event.set()
        self._end_event.set()

    def terminate(self, code: int, text: str) -> None:
        """Fail the response because its stream was reset or its connection lost; ignored if it is complete."""
        if not self._end_event.is_set():
            self._error = GRPCError(statuses.of_reset(code), text)
            assert self._inbox is not None
            self._inbox.fail(self._error)
            self._head_event.set()
            self._end_event.set()


def _error_of(fields: dict[str, str]) -> GRPCError | None:
    """Return the error in header fields; None without a valid status other than OK."""
    try:
        status = Status(int(fields["grpc-status"]))
    except (KeyError, ValueError):
        return None
    if status is Status.OK:
        return None
    message = fields.get("grpc-message")
    text = None if message is None else decode_grpc_message(message)
    return GRPCError(status, text, codec.decode_details(status, text, fields.get(codec.DETAILS_KEY)))

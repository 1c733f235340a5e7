"""Client side of one call, as used by generated stubs."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

import trio
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError
from grpclib.metadata import Deadline

from rpc import metadata as codec
from rpc.carrier import CallConnection, Peer
from rpc.client.response import Response
from rpc.parsing import one_by_one, too_deep
from rpc.peer_timeouts import catch_up
from rpc.statistics import Statistics

_pack_prefix = struct.Struct(">BI").pack
_TURN: Final = 15  # every 16th message is a checkpoint

T = TypeVar("T")


class Opener(Protocol):
    """Part of a channel, such as `rpc.client.channel.Channel`, that a call uses."""

    statistics: Statistics

    async def credential_headers(self) -> Sequence[tuple[str, str]]:
        """Return the header fields that the credentials add to a call."""
        ...

    def rejected(self, headers: Sequence[tuple[str, str]] | None) -> bool:
        """Report that a call with these credentials was UNAUTHENTICATED; True if new credentials may be accepted."""
        ...

    async def connection(self) -> CallConnection:
        """Return a usable connection; GRPCError (UNAVAILABLE) if connecting fails."""
        ...


class ClientCall:
    """Call with the interface of `grpclib.client.Stream`. Use it as an async context manager, within one task.

    Leaving the block normally raises GRPCError unless the status is OK; a response that is still being streamed is
    aborted silently. Leaving it by an exception or by cancellation aborts the call. After `timeout` seconds the block
    ends with DEADLINE_EXCEEDED, unless the whole response has arrived: input that arrived while this process was
    stopped is read first.

    A request of one message that is refused as UNAUTHENTICATED before the response starts is sent once more with new
    credentials, because its token may have been revoked.
    """

    def __init__(
        self,
        channel: Opener,
        method: str,
        cardinality: Cardinality,
        reply_type: Any,
        *,
        metadata: codec.MetadataLike | None,
        timeout: float | None,
        credentials: bool,
    ) -> None:
        self._channel = channel
        self._method = method
        self._cardinality = cardinality
        self._reply_type = reply_type
        self._metadata = codec.encode(metadata)
        self._timeout = timeout
        self._credentials = credentials
        self._sent_credentials: Sequence[tuple[str, str]] | None = None  # credentials sent with the request
        self._request = b""  # encoded unary request while it may have to be sent again
        self._scope = trio.CancelScope()
        self._response = Response()
        self._connection: CallConnection | None = None
        self._sid = 0
        self._ended = self._sent = False
        self._head_read = self._trailers_read = self._cancelled = False
        self._turn = 0
        self.initial_metadata: codec.Metadata | None = None
        self.trailing_metadata: codec.Metadata | None = None

    @property
    def peer(self) -> Peer | None:
        """Remote end of the connection, None before the request is sent."""
        return None if self._connection is None else self._connection.peer

    async def __aenter__(self) -> ClientCall:
        self._scope.deadline = inf if self._timeout is None else trio.current_time() + self._timeout
        self._scope.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        final_error = error
        if error is None:
            try:
                await self._finish()
            except BaseException as finish_error:
                final_error = finish_error
        elif isinstance(error, StreamTerminatedError):
            final_error = self._response.failure() or error
        if self._connection is not None:
            self._response.discard()
            self._connection.forget(self._sid)
        self._scope.__exit__(
            type(final_error) if final_error else None, final_error, final_error.__traceback__ if final_error else None
        )
        if self._scope.cancelled_caught:
            final_error = GRPCError(Status.DEADLINE_EXCEEDED, "deadline exceeded")
        if final_error is not None:
            self._channel.statistics.failed_calls += 1
            if _unauthenticated(final_error):
                self._channel.rejected(self._sent_credentials)
            if final_error is not error:
                raise final_error
        return False

    # Sending

    async def send_request(self, *, end: bool = False) -> None:
        """Connect if necessary and send the request headers. The first `send_message` calls this if needed."""
        if self._connection is not None:
            raise ProtocolError("the request was already sent")
        if end and not self._cardinality.client_streaming:
            raise ProtocolError("a unary request needs a message")
        extra = self._metadata
        if self._credentials:
            self._sent_credentials = await self._channel.credential_headers()
            extra = [*extra, *self._sent_credentials]
        connection = await self._channel.connection()
        if self._scope.deadline != inf:
            left = max(0.0, self._scope.deadline - trio.current_time())
            extra = [("grpc-timeout", codec.encode_timeout(left)), *extra]
        self._sid = await connection.begin(self._response, self._method, extra, end=end)
        self._response.attach(connection, self._sid)
        self._connection = connection
        self._ended = end
        self._channel.statistics.calls += 1

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        """Send one request message and wait for flow control; pass `end=True` with the last message.

        Raises GRPCError if the server has already ended the call with an error, StreamTerminatedError if it has ended
        the call with OK.
        """
        if self._connection is None:
            await self.send_request()
        if self._ended:
            raise ProtocolError("the request has ended")
        self._turn += 1
        if self._turn & _TURN == 0:
            await trio.lowlevel.checkpoint()
        self._sent = True
        data = message.SerializeToString()
        data = _pack_prefix(0, len(data)) + data
        if self._cardinality.client_streaming:
            await self._send(data, end=end)
            return
        if self._sent_credentials is not None:
            self._request = data
        try:
            await self._send(data, end=True)
        except GRPCError as error:
            if not await self._again(error):
                raise

    async def end(self) -> None:
        """End the request. A unary request has already ended with its message."""
        if self._connection is None or (not self._cardinality.client_streaming and not self._sent):
            raise ProtocolError("the request was not sent")
        if self._cardinality.client_streaming:
            if self._ended:
                raise ProtocolError("the request has ended")
            await self._send(b"", end=True)

    async def _send(self, data: bytes, *, end: bool) -> None:
        assert self._connection is not None
        self._ended = end
        try:
            await self._connection.send_data(self._sid, data, end=end)
        except StreamTerminatedError as error:
            failure = self._response.failure()
            if failure is not None:
                raise failure from error
            raise

    async def _again(self, error: GRPCError) -> bool:
        """Send the request again if `error` rejected its credentials. Returns False otherwise, or after one retry."""
        data, self._request = self._request, b""
        if not data or not _unauthenticated(error) or not self._channel.rejected(self._sent_credentials):
            return False
        assert self._connection is not None
        self._response.discard()
        self._connection.forget(self._sid)
        self._connection = None
        self._response = Response()
        await self.send_request()
        await self._send(data, end=True)
        return True

    # Receiving

    async def recv_initial_metadata(self) -> None:
        """Wait for the response headers and set `initial_metadata`. GRPCError if the call was refused."""
        if self._connection is None:
            raise ProtocolError("the request was not sent")
        if self._head_read:
            raise ProtocolError("initial metadata was already received")
        self._head_read = True
        head = await self._read_head()
        self._request = b""
        if head is not None:
            self.initial_metadata = head
            return
        self.initial_metadata = codec.decode(())
        await self._read_trailers()

    async def _read_head(self) -> codec.Metadata | None:
        """Return the response head; if the request was sent again, that of the second response."""
        try:
            head = await self._read(self._response.head)
        except GRPCError as error:
            if not await self._again(error):
                raise
            return await self._read(self._response.head)
        failure = self._response.failure() if head is None else None
        if failure is not None and await self._again(failure):
            head = await self._read(self._response.head)
        return head

    async def _read(self, part: Callable[[], Awaitable[T]]) -> T:
        """Wait for a part of the response. At the deadline, still return it if the whole response has arrived."""
        try:
            return await part()
        except trio.Cancelled:
            if not self._scope.cancel_called:
                raise
            with trio.CancelScope(shield=True):
                if not self._response.ended:
                    await catch_up()
                if self._response.ended:
                    return await part()
            raise

    async def recv_message(self) -> Any:
        """Return the next reply, None at the end."""
        if not self._head_read:
            await self.recv_initial_metadata()
        self._turn += 1
        if self._turn & _TURN == 0:
            await trio.lowlevel.checkpoint()
        data = await self._read(self._response.message)
        if data is None:
            return None
        try:
            return self._reply_type.FromString(data)
        except Exception as error:  # protobuf's DecodeError, without importing protobuf here
            if deep := await one_by_one(too_deep(self._reply_type, data)):
                raise GRPCError(Status.INTERNAL, f"the reply {deep}") from error
            raise GRPCError(Status.INTERNAL, f"the reply is not a valid {self._reply_type.__name__}") from error

    def __aiter__(self) -> ClientCall:
        return self

    async def __anext__(self) -> Any:
        message = await self.recv_message()
        if message is None:
            raise StopAsyncIteration
        return message

    async def recv_trailing_metadata(self) -> None:
        """Wait for the end of the response and set `trailing_metadata`. GRPCError unless the status is OK."""
        if not self._head_read:
            await self.recv_initial_metadata()
        if not self._trailers_read:
            await self._read_trailers()

    async def cancel(self) -> None:
        """Abort the call; leaving the block then raises no error."""
        if self._connection is None:
            raise ProtocolError("the request was not sent")
        self._cancelled = True
        self._response.discard()
        self._connection.forget(self._sid)

    async def _read_trailers(self) -> None:
        self._trailers_read = True
        self.trailing_metadata = await self._read(self._response.trailers)
        failure = self._response.failure()
        if failure is not None:
            raise failure

    async def _finish(self) -> None:
        if self._connection is None or self._cancelled or self._trailers_read:
            return
        if not self._response.ended and (self._cardinality.server_streaming or not self._ended):
            return  # left before the end: abort the call
        await self.recv_trailing_metadata()


def time_limit(timeout: float | None, deadline: Deadline | None) -> float | None:
    """Return the seconds that a call may take, by whichever limit is reached first; None without a limit."""
    if deadline is None:
        return timeout
    left: float = deadline.time_remaining()
    return left if timeout is None else min(timeout, left)


def _unauthenticated(error: BaseException) -> bool:
    return isinstance(error, GRPCError) and error.status is Status.UNAUTHENTICATED

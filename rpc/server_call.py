"""Server side of one call: the stream passed to a service method, and the task that runs it."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from math import inf
from typing import Any, Final, Protocol, TypeVar

import trio
from grpclib.const import Handler, Status
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError
from grpclib.metadata import Deadline

from rpc import metadata as codec
from rpc import status as statuses
from rpc.access.forwarded import Proxies
from rpc.carrier import Carrier, Headers, Identity, MutableHeaders, Peer
from rpc.errors import CANCEL
from rpc.inbox import PREFIX, Inbox
from rpc.limits import Limits
from rpc.parsing import PIECE, Steps, in_turns, is_large, merging, too_deep
from rpc.statistics import Statistics
from rpc.turns import Turns

_SHUTDOWN: Final = statuses.CallOutcome(Status.UNAVAILABLE, "the server is shutting down")
_DEADLINE: Final = statuses.CallOutcome(Status.DEADLINE_EXCEEDED, "deadline exceeded")
_log = logging.getLogger("rpc.call")
T = TypeVar("T")
_pack_prefix = struct.Struct(">BI").pack


class CallDeadline(Deadline):  # type: ignore[misc]
    """Deadline on Trio's clock with the interface of grpclib's Deadline."""

    def __init__(self, at: float) -> None:
        super().__init__(_timestamp=at)
        self.at = at

    def time_remaining(self) -> float:
        """Return the seconds left, zero if the deadline has passed."""
        return max(0.0, self.at - trio.current_time())


LARGE_REPLY: Final = 1024 * 1024  # bytes
_TURN: Final = 15  # every 16th message is a checkpoint, so that a handler that never blocks lets other tasks run


class Server(Protocol):
    """Part of `rpc.call.ServerCore` that a call uses."""

    limits: Limits
    proxies: Proxies
    statistics: Statistics
    turns: Turns


class ServerCall:
    """Call with the interface of `grpclib.server.Stream` for handlers; carriers use `feed`, `end`, `fail` and `run`.

    The call's task is `run`: it runs the handler under the caller's deadline, then sends the trailers. When the peer
    disconnects or resets the call, the handler is cancelled and nothing more is sent.
    """

    __slots__ = (
        "_carrier",
        "_core",
        "_deadline_at",
        "_gone",
        "_handler",
        "_headers",
        "_inbox",
        "_metadata",
        "_scope",
        "_sent_initial",
        "_sent_message",
        "_sent_trailing",
        "_streaming",
        "_turn",
        "ended",
        "identity",
        "initial_headers",
        "method",
        "received",
        "sent",
        "sid",
        "size",
        "status",
    )

    def __init__(
        self,
        carrier: Carrier,
        sid: int,
        method: str,
        handler: Handler,
        headers: Headers,
        core: Server,
        *,
        timeout: float | None = None,
        identity: Identity | None = None,
        metadata: codec.Metadata | None = None,
        encoding: str | None = None,
        max_message: int | None = None,
    ) -> None:
        self._carrier = carrier
        self.sid = sid
        self.method = method
        self._handler = handler
        self._streaming: bool = handler.cardinality.server_streaming
        self._headers = headers
        self._core = core
        self._metadata = metadata
        self.identity = identity
        # header fields added to the handler's initial metadata
        self.initial_headers: MutableHeaders = []
        self._deadline_at = inf if timeout is None else trio.current_time() + timeout
        largest = core.limits.max_message if max_message is None else max_message
        self._inbox = Inbox(carrier, sid, max_message=largest, budget=carrier.budget, encoding=encoding)
        if encoding is not None:
            self._inbox.inflate = self._in_turns
        self._scope: trio.CancelScope | None = None
        self._gone = False  # the peer has left, or this side has reset the call
        self._sent_initial = self._sent_message = self._sent_trailing = False
        self._turn = 0
        # for observers: message bytes so far and gRPC status; the status is None until the end or if the peer has left
        self.received = self.sent = 0
        self.size = 0  # bytes of the last request, decompressed
        self.status: int | None = None
        self.ended: Callable[[ServerCall], None] | None = None  # called once, when these values are final

    # For handlers

    @property
    def metadata(self) -> codec.Metadata:
        """Custom metadata of the request; values of `-bin` keys are bytes."""
        if self._metadata is None:
            self._metadata = codec.decode(self._headers)
        return self._metadata

    @property
    def request_headers(self) -> Headers:
        """Header fields of the request, as received."""
        return self._headers

    @property
    def user_agent(self) -> str | None:
        """User agent sent by the client, or None."""
        return next((value for key, value in self._headers if key == "user-agent"), None)

    @property
    def deadline(self) -> CallDeadline | None:
        """Deadline of the caller, None without one."""
        return None if self._deadline_at == inf else CallDeadline(self._deadline_at)

    @property
    def peer(self) -> Peer:
        """Client of the call: the peer of the connection, or the client named by a trusted proxy."""
        return self._core.proxies.client(self._carrier.peer, self._headers)

    @property
    def carrier_peer(self) -> Peer:
        """Peer of the connection, which may be a proxy."""
        return self._carrier.peer

    async def recv_message(self) -> Any:
        """Return the next request, None when the client has ended its side.

        Raises GRPCError for an invalid message (INTERNAL, as in the gRPC libraries) or one that is nested too deeply
        (INVALID_ARGUMENT). Handlers should not catch it; it becomes the status of the call. A large message is parsed
        in pieces, one in each turn of the connection; cancellation during this loses the message.
        """
        data = await self.recv_bytes()
        if data is None:
            return None
        kind = self._handler.request_type
        try:
            if len(data) > PIECE and is_large(kind, data):
                return await self._in_turns(merging(kind, data))
            return kind.FromString(data)
        except GRPCError:
            raise
        except Exception as error:  # protobuf's DecodeError, without importing protobuf here
            if deep := await self._in_turns(too_deep(kind, data)):
                raise GRPCError(Status.INVALID_ARGUMENT, f"the request {deep}") from error
            raise GRPCError(Status.INTERNAL, f"the request is not a valid {kind.__name__}") from error

    async def recv_bytes(self) -> bytes | None:
        """Return the next request without parsing it, None when the client has ended its side. GRPCError as above."""
        self._turn += 1
        if self._turn & _TURN == 0:
            await trio.lowlevel.checkpoint()
        data = await self._inbox.get()
        if data is not None:
            self.size = len(data)
        return data

    async def recv_framed(self) -> bytes | bytearray | None:
        """Return the next request as it was sent, with its prefix; None when the client has ended its side.

        GRPCError as above.
        """
        self._turn += 1
        if self._turn & _TURN == 0:
            await trio.lowlevel.checkpoint()
        framed = await self._inbox.get_framed()
        if framed is not None:
            self.size = len(framed) - PREFIX
        return framed

    async def _in_turns(self, steps: Steps[T]) -> T:
        return await in_turns(steps, self._core.turns, self._carrier.flow)

    def __aiter__(self) -> ServerCall:
        return self

    async def __anext__(self) -> Any:
        message = await self.recv_message()
        if message is None:
            raise StopAsyncIteration
        return message

    async def send_initial_metadata(self, *, metadata: codec.MetadataLike | None = None) -> None:
        """Send the response headers now instead of with the first message."""
        if self._sent_initial:
            raise ProtocolError("initial metadata was already sent")
        headers = self.initial_headers + codec.encode(metadata)
        self._sent_initial = True
        self._carrier.send_headers(self.sid, headers)

    async def send_message(self, message: Any, *, encoded: bytes | None = None) -> None:
        """Send one reply and wait for flow control. StreamTerminatedError if the client has left.

        `encoded` is the serialized message, if it was serialized before, for example in a thread.
        """
        if self._sent_trailing:
            raise ProtocolError("trailing metadata was already sent")
        if not self._streaming:
            if self._sent_message:
                raise ProtocolError("a unary call has only one reply")
        else:
            self._turn += 1
            if self._turn & _TURN == 0:
                await trio.lowlevel.checkpoint()
        if not isinstance(message, self._handler.reply_type):
            raise TypeError(
                f"{self.method} replies with {self._handler.reply_type.__name__}, not {type(message).__name__}"
            )
        data = message.SerializeToString() if encoded is None else encoded
        if len(data) > LARGE_REPLY:
            await trio.lowlevel.checkpoint()  # sending a large message counts as a step
        await self._send(_pack_prefix(0, len(data)) + data)

    async def send_framed(self, data: bytes | bytearray) -> None:
        """Send one reply of a streaming call as another server has sent it, with its prefix. See `send_message`.

        Neither this nor its caller changes `data` later.
        """
        if self._sent_trailing:
            raise ProtocolError("trailing metadata was already sent")
        self._turn += 1
        if self._turn & _TURN == 0:
            await trio.lowlevel.checkpoint()
        await self._send(data)

    async def _send(self, framed: bytes | bytearray) -> None:
        if not self._sent_initial:
            self._sent_initial = True
            self._carrier.send_headers(self.sid, self.initial_headers)
        self._sent_message = True
        self.sent += len(framed) - PREFIX
        await self._carrier.send_message(self.sid, framed)

    async def send_trailing_metadata(
        self,
        *,
        status: Status = Status.OK,
        status_message: str | None = None,
        status_details: Any = None,
        metadata: codec.MetadataLike | None = None,
    ) -> None:
        """End the call. Nothing can be sent afterwards. Otherwise `run` ends the call when the handler returns."""
        if self._sent_trailing:
            raise ProtocolError("trailing metadata was already sent")
        if status is Status.OK and not self._streaming and not self._sent_message:
            raise ProtocolError("a unary call with status OK needs a reply")
        self._send_trailers(status, status_message, status_details, metadata)

    def send_status(self, status: Status, headers: Headers) -> None:
        """End the call with a status and encoded trailers, such as those of another server; also without a reply."""
        self._end_with(status, [*headers])

    async def cancel(self) -> None:
        """Abort the call; the client sees it cancelled, without a status."""
        self._gone = True
        self._carrier.reset(self.sid, CANCEL)

    # For carriers

    @property
    def streaming(self) -> bool:
        """Whether the method has several replies."""
        return self._streaming

    @property
    def max_message(self) -> int:
        """Maximum bytes of one request message."""
        return self._inbox.max_message

    def feed(self, data: bytes | bytearray, flow: int) -> None:
        """Add bytes of the request; `flow` is their flow-controlled size."""
        self.received += len(data)
        self._inbox.feed(data, flow)

    def end(self) -> None:
        """Mark the end of the request."""
        self._inbox.end()

    def fail(self, error: GRPCError) -> None:
        """Make further reads of the request raise `error` in the handler."""
        self._inbox.fail(error)

    def cancel_by_peer(self) -> None:
        """Cancel the handler because the peer has reset the call or disconnected. Allowed before `run`."""
        self._gone = True
        if self._scope is not None:
            self._scope.cancel()

    async def run(self) -> None:
        """Run the handler, then send the trailers. Raises only Cancelled, from an outer cancellation."""
        statistics = self._core.statistics
        statistics.calls += 1
        outcome: statuses.CallOutcome | None = _SHUTDOWN
        try:
            with trio.CancelScope(deadline=self._deadline_at) as scope:
                self._scope = scope
                if self._gone:
                    scope.cancel()
                await self._handler.func(self)
            outcome = None
            if scope.cancelled_caught:
                outcome = _DEADLINE
        except StreamTerminatedError:
            outcome = statuses.CallOutcome(Status.UNAVAILABLE, "a call this one depends on was terminated")
        except Exception as error:
            outcome = statuses.of_exception(error)
            if outcome.bug and not self._gone:
                _log.exception("%s failed", self.method)
        finally:
            self._inbox.drop()
            if not self._sent_trailing and not self._gone:
                self._finish(outcome)
            elif self._gone:
                statistics.cancelled_calls += 1
            self._carrier.forget(self.sid)
            if self.ended is not None:
                self.ended(self)

    def _finish(self, outcome: statuses.CallOutcome | None) -> None:
        if outcome is None:
            if self._sent_message or self._streaming:
                self._sent_trailing = True
                self.status = 0
                self._carrier.send_trailers(self.sid, 0, (), headers_sent=self._sent_initial)
                return
            if trio.current_time() >= self._deadline_at:
                outcome = _DEADLINE
            elif trio.current_effective_deadline() == -inf:
                outcome = _SHUTDOWN  # cancelled from outside: not an error of a handler that cleaned up and returned
            else:
                _log.error("%s returned without a reply", self.method)
                outcome = statuses.CallOutcome(Status.INTERNAL, "the handler returned without a reply")
        self._send_trailers(outcome.status, outcome.message, outcome.details, None)

    def _send_trailers(
        self, status: Status, message: str | None, details: Any, metadata: codec.MetadataLike | None
    ) -> None:
        self._end_with(status, codec.encode_outcome(message, details, status) + codec.encode(metadata))

    def _end_with(self, status: Status, extra: MutableHeaders) -> None:
        if not self._sent_initial and self.initial_headers:
            self._sent_initial = True
            self._carrier.send_headers(self.sid, self.initial_headers)
        self._sent_trailing = True
        self.status = status.value
        if status is not Status.OK:
            self._core.statistics.failed_calls += 1
        self._carrier.send_trailers(self.sid, status.value, extra, headers_sent=self._sent_initial)

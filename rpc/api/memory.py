"""In-process channel that calls handlers without a network, through serialized messages. For tests and tools.

It has the interface of grpclib's channel, so it can replace `rpc.client.channel.Channel`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import trio
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from multidict import MultiDict

from rpc.carrier import Identity, Peer
from rpc.status import of_exception
from support import raised_alone

_BUFFER = 16  # messages in flight in one direction


class MemoryChannel:
    """Channel that calls the handlers of `router` (an object with `get(path)`) as `identity`."""

    def __init__(self, router: Any, *, identity: Identity | None = None) -> None:
        self._router = router
        self._identity = identity

    def request(
        self,
        name: str,
        cardinality: Cardinality,
        request_type: type,
        reply_type: type,
        *,
        timeout: float | None = None,
        deadline: Any = None,
        metadata: Any = None,
    ) -> MemoryCall:
        """Return a call, which is an async context manager."""
        return MemoryCall(self._router.get(name), name, reply_type, MultiDict(metadata or ()), self._identity)


class MemoryCall:
    """Client side of one call. Leaving the block before the call has ended cancels the handler."""

    def __init__(
        self, handler: Handler | None, path: str, reply_type: Any, metadata: MultiDict[Any], identity: Identity | None
    ) -> None:
        self.initial_metadata: MultiDict[Any] | None = None
        self.trailing_metadata: MultiDict[Any] | None = None  # never sent
        self._handler = handler
        self._path = path
        self._reply_type = reply_type
        self._error: GRPCError | None = None
        self._nursery_manager = trio.open_nursery()
        self._requests, requests = trio.open_memory_channel[bytes](_BUFFER)
        replies, self._replies = trio.open_memory_channel[bytes](_BUFFER)
        self._started = trio.Event()
        self._server = MemoryStream(self, requests, replies, metadata, identity)

    async def __aenter__(self) -> Self:
        nursery = await self._nursery_manager.__aenter__()
        self._scope = nursery.cancel_scope
        nursery.start_soon(self._serve, name=self._path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._scope.cancel()
        with self._requests, self._replies:
            try:
                return await self._nursery_manager.__aexit__(kind, error, traceback)
            except BaseExceptionGroup as group:
                if error is not None and raised_alone(group, error):
                    return False
                raise

    async def _serve(self) -> None:
        with self._server.replies, self._server.requests:
            try:
                if self._handler is None:
                    raise GRPCError(Status.UNIMPLEMENTED, f"{self._path} is not served")
                await self._handler.func(self._server)
                self._server.status = 0
            except Exception as error:
                outcome = of_exception(error)
                self._server.status = outcome.status.value
                if outcome.bug:
                    raise
                self._error = GRPCError(outcome.status, outcome.message, outcome.details)
            finally:
                if self._server.ended is not None:
                    self._server.ended(self._server)
        self._started.set()

    def sent_initial(self, metadata: Any) -> None:
        """Store the initial metadata that the handler has sent."""
        self.initial_metadata = MultiDict(metadata or ())
        self._started.set()

    async def send_request(self) -> None:
        """Do nothing; the call starts when its block is entered."""

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        """Send a request; pass `end=True` with the last request."""
        try:
            await self._requests.send(message.SerializeToString())
        except trio.BrokenResourceError:
            pass  # the handler has ended; recv_message returns its replies or error
        if end:
            await self.end()

    async def end(self) -> None:
        """End the request stream."""
        self._requests.close()

    async def recv_initial_metadata(self) -> None:
        """Wait until the handler has sent its initial metadata or first reply, or has ended."""
        await self._started.wait()

    async def recv_message(self) -> Any:
        """Return the next reply, None after the last. Raises the GRPCError of a failed call."""
        try:
            data = await self._replies.receive()
        except trio.EndOfChannel:
            await self.recv_trailing_metadata()
            return None
        return self._reply_type.FromString(data)

    async def recv_trailing_metadata(self) -> None:
        """Raise the GRPCError of a failed call."""
        if self._error is not None:
            raise self._error


class MemoryStream:
    """Handler side of one call, with the interface of `rpc.server_call.ServerCall`."""

    deadline = None
    user_agent = None

    def __init__(
        self,
        call: MemoryCall,
        requests: trio.MemoryReceiveChannel[bytes],
        replies: trio.MemorySendChannel[bytes],
        metadata: MultiDict[Any],
        identity: Identity | None,
    ) -> None:
        self.requests = requests
        self.replies = replies
        self.metadata = metadata
        self.identity = identity
        self.peer = Peer(("127.0.0.1", 0))
        self._call = call
        self.received = self.sent = self.size = 0
        self.status: int | None = None
        self.ended: Callable[[MemoryStream], None] | None = None

    async def recv_message(self) -> Any:
        """Return the next request, None after the last."""
        assert self._call._handler is not None
        try:
            data = await self.requests.receive()
        except trio.EndOfChannel:
            return None
        self.received += len(data)
        self.size = len(data)
        return self._call._handler.request_type.FromString(data)

    def __aiter__(self) -> MemoryStream:
        return self

    async def __anext__(self) -> Any:
        message = await self.recv_message()
        if message is None:
            raise StopAsyncIteration
        return message

    async def send_initial_metadata(self, *, metadata: Any = None) -> None:
        """Send initial metadata; RuntimeError if it was already sent."""
        if self._call.initial_metadata is not None:
            raise RuntimeError("initial metadata was already sent")
        self._call.sent_initial(metadata)

    async def send_message(self, message: Any, *, encoded: bytes | None = None) -> None:
        """Send a reply."""
        if self._call.initial_metadata is None:
            self._call.sent_initial(None)
        data = message.SerializeToString() if encoded is None else encoded
        self.sent += len(data)
        await self.replies.send(data)

"""Client side of calls over a data channel, for generated stubs and `rpc.api.client.ApiClient`."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final

import trio
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.metadata import Deadline

from rpc import metadata as codec
from rpc.carrier import Caller, Headers, MutableHeaders
from rpc.client.call import ClientCall, time_limit
from rpc.datachannel import envelope
from rpc.datachannel.assembly import Assembly
from rpc.datachannel.connection import CarrierConnection, ChannelCall, ChannelPeer
from rpc.errors import PROTOCOL_ERROR, REFUSED_STREAM, StreamFault
from rpc.limits import Limits
from rpc.peers.port import MAX_MESSAGE, PeerChannel
from rpc.statistics import Statistics

_HEAD: Final = ((":status", "200"), ("content-type", "application/grpc"))


class CallChannel:
    """Channel for generated stubs, like `rpc.client.channel.Channel`, whose calls use one data channel.

    Use it as an async context manager; leaving it ends its calls and closes the data channel. Calls wait until the data
    channel is open; its end ends them with UNAVAILABLE. They have no credentials, because signalling has used them.
    """

    def __init__(self, channel: PeerChannel, *, limits: Limits | None = None) -> None:
        self.statistics = Statistics()
        self._connection = ClientChannel(channel, limits or Limits(), self.statistics)
        self._manager = trio.open_nursery()

    async def __aenter__(self) -> CallChannel:
        nursery = await self._manager.__aenter__()
        nursery.start_soon(self._connection.run, name="data channel")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        # Without the error, so that it is not wrapped in a group.
        await self._manager.__aexit__(None, None, None)

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
        credentials: bool = False,
    ) -> ClientCall:
        """Return a call of the method `name`; enter it to send the request. `credentials` has no effect."""
        timeout = time_limit(timeout, deadline)
        return ClientCall(self, name, cardinality, reply_type, metadata=metadata, timeout=timeout, credentials=False)

    async def lost(self) -> None:
        """Wait until the data channel has ended."""
        await self._connection.ended.wait()

    # For calls

    async def credential_headers(self) -> Sequence[tuple[str, str]]:
        """Return no header fields."""
        return ()

    def rejected(self, headers: Sequence[tuple[str, str]] | None) -> bool:
        """Return False: there are no other credentials."""
        return False

    async def connection(self) -> ClientChannel:
        """Return the only connection, also after its end."""
        return self._connection


class ClientChannel(CarrierConnection):
    """Client of the calls of one channel, a `rpc.carrier.CallConnection`."""

    def __init__(self, channel: PeerChannel, limits: Limits, statistics: Statistics) -> None:
        super().__init__(channel, limits, statistics, ChannelPeer())
        self.ended = trio.Event()
        self._last_sid = 0
        self._slots = trio.lowlevel.ParkingLot()

    async def run(self) -> None:
        """Receive responses until the channel ends."""
        try:
            await self.read()
        finally:
            self.close()

    def close(self) -> None:
        """End all calls and close the channel after the messages that are queued."""
        super().close()
        self.ended.set()
        self._slots.unpark_all()

    async def begin(self, caller: Caller, method: str, headers: Headers, *, end: bool) -> int:
        """Start a call of `method`, waiting until the connection can carry one more; return its number.

        RESOURCE_EXHAUSTED if the metadata does not fit into one message.
        """
        try:
            await self.channel.wait_open()
        except trio.BrokenResourceError:
            raise _lost() from None
        await self.channel.wait_room()
        while len(self.streams) >= self.limits.max_streams and not self.closed:
            await self._slots.park()
        if self.closed:
            raise _lost()
        sid = self._last_sid = self._last_sid + 1
        data = envelope.request_headers(sid, method, headers)
        if len(data) > MAX_MESSAGE:
            text = f"metadata of {len(data)} bytes is larger than {MAX_MESSAGE}, the limit of data channels"
            raise GRPCError(Status.RESOURCE_EXHAUSTED, text)
        self.streams[sid] = ClientStream(self, sid, caller)
        self.put(data)
        if end:
            self.put(envelope.request_end(sid))
        return sid

    async def send_data(self, sid: int, data: bytes | bytearray, *, end: bool = False) -> None:
        """Send one message, including its 5-byte prefix, or with `end` and no data only the end of the request."""
        stream = self.streams.get(sid)
        if stream is None:
            raise StreamTerminatedError("the call has ended")
        if data:
            await stream.send(data, end=end)
        else:
            await self.transmit(envelope.request_end(sid))

    def consumed(self, sid: int, n: int) -> None:
        """Return `n` bytes that the call has read to flow control."""
        stream = self.streams.get(sid)
        if stream is not None:
            stream.assembly.consumed(n)

    def forget(self, sid: int) -> None:
        """Release a call, and abort it unless it is complete."""
        stream = self.streams.get(sid)
        if stream is not None:
            self.put(envelope.request_reset(sid))
            self.release(stream)

    def release(self, stream: ChannelCall) -> None:
        """Free the place of a call that is done."""
        stream.finish()
        self.streams.pop(stream.sid, None)
        self._slots.unpark()

    async def handle(self, data: bytes | str) -> None:
        """Handle one envelope."""
        response = envelope.parse("Response", data)
        stream = self.streams.get(response.stream.id) if response.HasField("stream") else None
        if stream is None:
            self.glitch("a response of a call that has ended")
            return
        assert isinstance(stream, ClientStream)
        try:
            stream.receive(response)
        except StreamFault as fault:
            self.stream_fault(stream, fault)


class ClientStream(ChannelCall):
    """One call, which passes its response to `caller` as HTTP/2 header fields and messages."""

    def __init__(self, connection: ClientChannel, sid: int, caller: Caller) -> None:
        super().__init__(connection, sid)
        limits = connection.limits
        self.assembly = Assembly(connection.budget, limits.max_message, limits.stream_window)
        self._client = connection
        self._caller = caller
        self._begun = False  # the headers of the response have arrived

    def receive(self, response: Any) -> None:
        """Handle one Response. StreamFault if it breaks a rule or limit."""
        kind = response.WhichOneof("type")
        if kind == "message":
            self._on_message(response.message.packet_message)
        elif kind == "headers":
            if self._begun:
                raise StreamFault(PROTOCOL_ERROR, "frame format", "the headers of this response came twice")
            fields = self._fields(response.headers.metadata)
            self._begun = True
            self._caller.on_headers([*_HEAD, *fields], end=False)
        elif kind == "trailers":
            self._on_trailers(response.trailers)
        else:
            self._client.glitch("a response without content")

    def _on_message(self, packet: Any) -> None:
        if not self._begun:
            raise StreamFault(PROTOCOL_ERROR, "frame format", "a message before the headers of the response")
        data = self.assembly.add(packet.data, last=packet.eom)
        if data is not None:
            self._caller.feed(data, len(data))

    def _on_trailers(self, trailers: Any) -> None:
        if self.assembly.incomplete and not trailers.status.code:
            raise StreamFault(PROTOCOL_ERROR, "frame format", "the response ended in the middle of a message")
        fields = [*envelope.trailer_fields(trailers), *self._fields(trailers.metadata)]
        self._caller.on_headers(fields if self._begun else [*_HEAD, *fields], end=True)
        self._client.release(self)
        self._caller.end()

    def _fields(self, metadata: Any) -> MutableHeaders:
        return envelope.fields_of(metadata, self._client.limits.max_header_list)

    def abandon(self, code: int, text: str) -> None:
        """Notify the receiver that its call was ended, with an HTTP/2 error code, and send nothing more."""
        self.finish()
        self._caller.terminate(REFUSED_STREAM, text)

    def fail(self, code: int, text: str) -> None:
        """End the call because the peer broke a rule or limit: notify the peer and the receiver."""
        self._client.put(envelope.request_reset(self.sid))
        self._client.release(self)
        self._caller.terminate(code, text)

    def packet(self, data: bytes, *, last: bool, end: bool) -> bytes:
        """Encode a packet."""
        return envelope.request_message(self.sid, data, last=last, end=end)


def _lost() -> GRPCError:
    return GRPCError(Status.UNAVAILABLE, "the data channel has ended")

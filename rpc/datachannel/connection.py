"""Data channel that carries calls, common to both sides: reading, back-pressure, faults of the peer, closing."""

from __future__ import annotations

import logging
from typing import Final

import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc.carrier import Peer
from rpc.datachannel.assembly import MAX_ASSEMBLED, Assembly
from rpc.datachannel.envelope import CHUNK
from rpc.errors import CANCEL, ENHANCE_YOUR_CALM, ConnectionFault, StreamFault
from rpc.inbox import PREFIX, Budget
from rpc.limits import Limits
from rpc.peers.port import HIGH_WATER, PeerChannel
from rpc.statistics import Statistics
from support import Bucket

PAUSE: Final = 2 * HIGH_WATER
"""Buffered bytes above which reading pauses. `Channel.send` waits at a lower mark, so only headers and trailers can
exceed this one, when the peer sends requests and does not read the responses."""

_log = logging.getLogger("rpc.datachannel")


class ChannelPeer(Peer):
    """Remote end of a data channel, never local: a relay or the peer itself may have chosen its address."""

    @property
    def local(self) -> bool:
        """False, even for a loopback address: a data channel never has the rights of a local program."""
        return False


class ChannelCall:
    """One call on a channel, until `done`. At most one task sends a message at a time, others wait."""

    assembly: Assembly  # set before the first packet arrives

    def __init__(self, connection: CarrierConnection, sid: int) -> None:
        self.connection = connection
        self.sid = sid
        self.done = False  # nothing more is sent or delivered
        self.cut = False  # a message was sent in part, because its task was cancelled
        self._sending = trio.Lock()

    def packet(self, data: bytes, *, last: bool, end: bool) -> bytes:
        """Encode a packet."""
        raise NotImplementedError

    def abandon(self, code: int, text: str) -> None:
        """Notify the receiver that its call was ended, with an HTTP/2 error code, and send nothing more."""
        raise NotImplementedError

    def fail(self, code: int, text: str) -> None:
        """End the call because the peer broke a rule or limit: notify the peer and the receiver."""
        raise NotImplementedError

    def finish(self) -> None:
        """Mark the call as done and free what it holds. Repeated calls have no effect."""
        self.done = True
        self.assembly.drop()

    async def send(self, data: bytes | bytearray, *, end: bool = False) -> None:
        """Send one message, including its 5-byte prefix, packet by packet: other calls send between them.

        Raises StreamTerminatedError if the call has ended, and GRPCError (RESOURCE_EXHAUSTED) for a message that is too
        large for data channels. Cancellation inside a message ends what can be sent.
        """
        size = len(data)
        if size - PREFIX > MAX_ASSEMBLED:
            text = f"message of {size - PREFIX} bytes is larger than {MAX_ASSEMBLED}, the limit of data channels"
            raise GRPCError(Status.RESOURCE_EXHAUSTED, text)
        if size - PREFIX <= CHUNK and not self._sending.locked():
            await self._send(data, PREFIX, end=end)
            return
        position = PREFIX
        async with self._sending:
            try:
                while position < size:
                    await self._send(data, position, end=end)
                    position += CHUNK
            finally:
                self.cut = self.cut or PREFIX < position < size

    async def _send(self, data: bytes | bytearray, position: int, *, end: bool) -> None:
        """Send the packet that starts at `position` of a message."""
        if self.done or self.cut:
            raise StreamTerminatedError("the call has ended")
        last = position + CHUNK >= len(data)
        await self.connection.transmit(
            self.packet(bytes(data[position : position + CHUNK]), last=last, end=last and end)
        )


class CarrierConnection:
    """Calls on one channel. `run` ends when the channel does; it closes the channel."""

    def __init__(self, channel: PeerChannel, limits: Limits, statistics: Statistics, peer: Peer) -> None:
        self.channel = channel
        self.limits = limits
        self.statistics = statistics
        self.peer = peer
        self.budget = Budget(limits.max_buffered)
        self.streams: dict[int, ChannelCall] = {}  # calls that are not done, by the id that the client has chosen
        self.closed = False
        self._glitches = Bucket(limits.glitch_burst, limits.glitch_rate)

    async def handle(self, data: bytes | str) -> None:
        """Handle one message of the channel. ConnectionFault ends the channel."""
        raise NotImplementedError

    def close(self) -> None:
        """End all calls and close the channel after the messages that are queued. Repeated calls have no effect."""
        if not self.closed:
            self.closed = True
            self.abandon_all()
            self.channel.close()

    async def read(self) -> None:
        """Handle messages until the channel ends or the peer breaks a rule."""
        try:
            await self.channel.wait_open()
            while True:
                data = await self.channel.receive()
                await self.handle(data)
                if self.channel.buffered > PAUSE:
                    await self._wait_room()
        except ConnectionFault as fault:
            self.give_up(fault)
        except (trio.EndOfChannel, trio.BrokenResourceError):
            if not self.closed:
                self.peer.farewell.said = True
        except Exception:
            _log.exception("reading from the data channel of %s failed", self.peer.addr())

    async def _wait_room(self) -> None:
        """Wait until the peer has read what it was sent; ConnectionFault if it takes `limits.window_stall` seconds."""
        with trio.move_on_after(self.limits.window_stall) as scope:
            await self.channel.wait_room(PAUSE)
        if scope.cancelled_caught:
            raise ConnectionFault(CANCEL, "slow reader", "nothing was read for too long")

    def put(self, envelope: bytes) -> None:
        """Queue headers, trailers or a reset; ignored after the end of the channel."""
        self.channel.send_nowait(envelope)

    async def transmit(self, envelope: bytes) -> None:
        """Send a packet and wait for room. Raises StreamTerminatedError after the end of the channel.

        Closes the channel if the peer reads nothing for `limits.window_stall` seconds.
        """
        try:
            with trio.move_on_after(self.limits.window_stall) as scope:
                await self.channel.send(envelope)
        except trio.BrokenResourceError:
            self.abandon_all()
            raise StreamTerminatedError("the data channel has ended") from None
        if scope.cancelled_caught:
            self.give_up(ConnectionFault(CANCEL, "slow reader", "nothing was read for too long"))
            raise StreamTerminatedError("the data channel has ended")

    def give_up(self, fault: ConnectionFault) -> None:
        """Count and log a fault of the peer, and close the channel; the protocol has no message for the reason."""
        if not self.closed:
            self.statistics.refused(fault.reason)
            _log.info("closing the data channel of %s: %s", self.peer.addr(), fault)
            self.close()

    def stream_fault(self, stream: ChannelCall, fault: StreamFault) -> None:
        """Count a fault of the peer and end its call."""
        self.statistics.refused(fault.reason)
        if not stream.done:
            stream.fail(fault.code, fault.text)

    def glitch(self, what: str) -> None:
        """Count an envelope without effect, such as one of a call that has ended; too many end the channel."""
        _log.debug("ignored from %s: %s", self.peer.addr(), what)
        if not self._glitches.take(trio.current_time()):
            raise ConnectionFault(
                ENHANCE_YOUR_CALM, "useless frames", f"too many envelopes without effect, such as {what}"
            )

    def abandon_all(self) -> None:
        """End all calls, because the channel has ended."""
        for stream in tuple(self.streams.values()):
            stream.abandon(CANCEL, "the data channel has ended")
        self.streams.clear()

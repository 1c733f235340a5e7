"""Renegotiation of a peer connection over its channel "negotiation", as the official clients do it.

Each message is the base64 form of a session description in JSON. If both ends make an offer at the same time, that of
this end counts: the official client for browsers then withdraws its own, and makes it again afterwards.
"""

from __future__ import annotations

import logging
from typing import Final

import trio

from rpc.peers.port import Description, PeerChannel, PeerConnection
from rpc.peers.signals import decode_description, encode_description
from schema import ErrorKind, MachineError
from support import Bucket

BURST: Final = 32
RATE: Final = 2.0
"""Messages of the other end at once, and per second in the long run. Each may cost the engine milliseconds."""

_log = logging.getLogger("rpc.peers")


class _Exchange:
    """An offer of this end until it is answered."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.error: MachineError | None = None

    def end(self, error: MachineError | None = None) -> None:
        self.error = error
        self.done.set()


class Negotiator:
    """Exchanges session descriptions over a channel; one task calls `run`, any may call `offer`."""

    def __init__(self, peer: PeerConnection, channel: PeerChannel) -> None:
        self._peer = peer
        self._channel = channel
        self._offers = trio.Lock()  # own ones, in order
        self._steps = trio.Lock()  # an offer and its local description belong together, like an offer and its answer
        self._exchange: _Exchange | None = None
        self._messages = Bucket(BURST, RATE)

    async def run(self) -> None:
        """Handle the messages of the other end until the channel ends, then close it.

        Messages that cannot be used are logged and dropped; too many messages end the channel.
        """
        try:
            await self._channel.wait_open()
            while True:
                data = await self._channel.receive()
                if not self._messages.take(trio.current_time()):
                    _log.warning("renegotiation is over: the other end sends more than %g messages a second", RATE)
                    return
                try:
                    await self._handle(decode_description(data))
                except MachineError as error:
                    _log.info("a message on the channel %r was dropped: %s", self._channel.label, error)
        except (trio.EndOfChannel, trio.BrokenResourceError):
            pass
        finally:
            self._channel.close()
            if self._exchange is not None:
                self._exchange.end(_ended())

    async def offer(self) -> None:
        """Make an offer, and wait until the other end has answered it; one exchange at a time.

        If cancelled while it waits, the answer is still applied when it arrives, and later offers wait for it. Raises
        MachineError: UNAVAILABLE at the end of the channel, INVALID if the answer cannot be used.
        """
        async with self._offers:
            if self._exchange is not None:
                await self._exchange.done.wait()  # its caller has given up
            exchange = await self._begin()
            await exchange.done.wait()
        if exchange.error is not None:
            raise exchange.error

    async def _begin(self) -> _Exchange:
        """Send an offer."""
        async with self._steps:
            exchange = self._exchange = _Exchange()
            sent = False
            try:
                await self._channel.send(encode_description(await self._peer.offer()))
                sent = True
            except trio.BrokenResourceError:
                raise _ended() from None
            finally:
                if not sent:
                    self._end_exchange()
            return exchange

    def _end_exchange(self, error: MachineError | None = None) -> None:
        assert self._exchange is not None
        self._exchange.end(error)
        self._exchange = None

    async def _handle(self, description: Description) -> None:
        if description.kind == "answer":
            if self._exchange is None:
                raise _unexpected("an answer without an offer")
            try:
                await self._peer.accept(description)
            except MachineError as error:
                self._end_exchange(error)
            else:
                self._end_exchange()
            return
        async with self._steps:
            if self._exchange is not None:
                raise _unexpected("an offer at the same time as one of this end")
            await self._peer.accept(description)
            await self._channel.send(encode_description(await self._peer.answer()))


def _unexpected(what: str) -> MachineError:
    return MachineError(what, kind=ErrorKind.PRECONDITION)


def _ended() -> MachineError:
    return MachineError("the channel for renegotiation has ended", kind=ErrorKind.UNAVAILABLE, remedy="connect again")

"""Peer connections on aiortc, an independent peer for tests of the product's engine. It runs on trio-asyncio."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import aioice.ice
import aiortc
import aiortc.sdp
import trio

from rpc.peers.channel import MAX_QUEUED, MessageChannel
from rpc.peers.connection import ConnectionBase, closed, refused
from rpc.peers.intake import unusable
from rpc.peers.media.tracks import Senders
from rpc.peers.port import (
    HIGH_WATER,
    MAX_SOUNDS,
    MAX_TRACKS,
    Description,
    IceCandidate,
    PathReport,
    PeerChannel,
    PeerOptions,
    PeerState,
    Sound,
    SoundTrack,
    VideoFrame,
    VideoTrack,
)
from rpc.peers.servers import check_servers
from tests.netns.peers.oracle.loop import CLOSING_LIMIT, Loop, open_loop
from tests.netns.peers.oracle.tracks import AiortcSender, SoundSource, VideoSource

CONSENT_INTERVAL: Final = 1.0  # seconds; six checks without answer end a connection, as soon as with libwebrtc
RETRANSMISSION: Final = 0.4  # seconds, at least, before a lost packet is sent again: as libwebrtc, instead of 1

_log = logging.getLogger("rpc.peers")


@asynccontextmanager
async def open_engine() -> AsyncIterator[AiortcEngine]:
    """Run an engine until the block ends; then close its connections, shielded, within CLOSING_LIMIT."""
    aioice.ice.CONSENT_INTERVAL = CONSENT_INTERVAL
    aiortc.rtcsctptransport.SCTP_RTO_MIN = RETRANSMISSION
    for name in ("aiortc", "aioice"):
        logging.getLogger(name).setLevel(logging.WARNING)  # at DEBUG they log passwords
    async with open_loop() as loop, trio.open_nursery() as nursery:
        engine = AiortcEngine(loop, nursery)
        try:
            yield engine
        finally:
            with trio.move_on_after(CLOSING_LIMIT, shield=True):
                await engine._close_all()
            nursery.cancel_scope.cancel()


class AiortcEngine:
    """Factory of peer connections, created by `open_engine`."""

    name: Final = "aiortc"

    def __init__(self, loop: Loop, nursery: trio.Nursery) -> None:
        self._loop = loop
        self._nursery = nursery
        self._peers: set[AiortcPeer] = set()

    def connect(self, options: PeerOptions) -> AiortcPeer:
        """Return a new peer connection. Raises MachineError (INVALID) for ICE servers that are not valid."""
        check_servers(options)
        peer = AiortcPeer(self._loop, _configuration(options), self._finish)
        self._peers.add(peer)
        return peer

    def _finish(self, peer: AiortcPeer) -> None:
        self._nursery.start_soon(self._end, peer)

    async def _end(self, peer: AiortcPeer) -> None:
        try:
            await peer.finish()
        finally:
            self._peers.discard(peer)

    async def _close_all(self) -> None:
        for peer in list(self._peers):
            peer.close()
            await peer.finished.wait()


class AiortcPeer(ConnectionBase):
    """Implementation of `port.PeerConnection`. The candidates of this end are in its descriptions."""

    def __init__(self, loop: Loop, configuration: Any, on_close: Callable[[AiortcPeer], None]) -> None:
        super().__init__()
        self.finished = trio.Event()
        self._loop = loop
        self._on_close = on_close
        with loop.entered():
            self._native = aiortc.RTCPeerConnection(configuration)
        self._native.on("connectionstatechange", self._handle_state)
        self._native.on("datachannel", lambda channel: channel.close())  # only agreed channels are used
        self._calls = 0  # of methods of aiortc that run now
        self._idle = trio.lowlevel.ParkingLot()
        self._videos = Senders[VideoFrame](lambda: AiortcSender(loop, self._native, VideoSource), MAX_TRACKS, "videos")
        self._sounds = Senders[Sound](lambda: AiortcSender(loop, self._native, SoundSource), MAX_SOUNDS, "sounds")

    def channel(self, label: str, number: int) -> PeerChannel:
        """Return a channel with a number that both ends have agreed on; call before the first description."""
        self._check_open()
        with self._loop.entered():
            native = self._native.createDataChannel(label, negotiated=True, id=number)
        channel = MessageChannel(label, _Link(self._loop, native))
        native.bufferedAmountLowThreshold = HIGH_WATER
        native.on("open", channel.opened)
        native.on("message", channel.arrived)
        native.on("bufferedamountlow", channel.drained)
        native.on("close", channel.ended)
        self._channels.append(channel)
        return channel

    def add_video(self, stream: str) -> VideoTrack:
        """Return a new outgoing video, see `port.PeerConnection`."""
        self._check_open()
        return self._videos.add(stream)

    def add_sound(self, stream: str) -> SoundTrack:
        """Return a new outgoing sound, see `port.PeerConnection`."""
        self._check_open()
        return self._sounds.add(stream)

    async def offer(self) -> Description:
        """Make an offer, apply it and gather all candidates, see `port.PeerConnection`."""
        return await self._describe("offer", self._native.createOffer)

    async def answer(self) -> Description:
        """Make the answer, apply it and gather all candidates, see `port.PeerConnection`."""
        description = await self._describe("answer", self._native.createAnswer)
        self._negotiated()
        return description

    async def accept(self, description: Description) -> None:
        """Apply the description of the other end. Raises MachineError (INVALID) if it cannot be used."""
        self._check_open()
        checked = self._intake.description(description)
        native = aiortc.RTCSessionDescription(checked.sdp, checked.kind)
        await self._apply("session description", self._native.setRemoteDescription, native)
        self._refuse_media()
        self._negotiated()

    def _negotiated(self) -> None:
        self._videos.negotiated()
        self._sounds.negotiated()

    def _refuse_media(self) -> None:
        """Receive nothing: media would only cost decoding."""
        own = [*self._videos.transceivers(), *self._sounds.transceivers()]
        for transceiver in self._native.getTransceivers():
            if transceiver not in own:
                transceiver.direction = "inactive"

    async def add_candidate(self, candidate: IceCandidate) -> None:
        """Add a candidate of the other end, see `port.PeerConnection`."""
        self._check_open()
        checked = self._intake.candidate(candidate)
        if checked is None:
            await trio.lowlevel.checkpoint()
            return
        await self._apply("candidate", self._add_candidate, checked)

    async def report(self) -> PathReport:
        """Return the path in use."""
        self._check_open()
        await trio.lowlevel.checkpoint()
        sctp = self._native.sctp
        pair = None if sctp is None else next(iter(sctp.transport.transport._connection._nominated.values()), None)
        if pair is None:
            return PathReport()
        transport = next(iter(sctp.transport._get_stats().values()))
        return PathReport(
            local=pair.local_candidate.type,
            remote=pair.remote_candidate.type,
            protocol=pair.local_candidate.transport,
            remote_address=pair.remote_candidate.host,
            bytes_sent=transport.bytesSent,
            bytes_received=transport.bytesReceived,
        )

    def close(self) -> None:
        """Close the connection and its channels. Idempotent."""
        if self._state is not PeerState.CLOSED:
            self._videos.end()
            self._sounds.end()
            self.entered(PeerState.CLOSED)
            self._on_close(self)

    async def finish(self) -> None:
        """Complete what `close` has begun: tell the other end and close the sockets. Shielded, with a limit."""
        for sender in self._native.getSenders():
            if sender.track is not None:
                sender.track.stop()
        try:
            with trio.fail_after(CLOSING_LIMIT, shield=True):
                await self._loop.run(self._native.close)
                while self._calls:
                    await self._idle.park()
                await self._loop.run(self._close_late_sockets)
        except Exception as error:
            _log.warning("a peer connection of aiortc did not close properly: %r", error)
        finally:
            self.finished.set()

    async def _close_late_sockets(self) -> None:
        """Close the sockets of candidates that were gathered during `close`."""
        for transport in self._native._RTCPeerConnection__iceTransports:
            await transport._connection.close()

    async def _run(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        self._calls += 1
        try:
            return await self._loop.run(function, *arguments)
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.unpark_all()

    async def _describe(self, kind: Literal["offer", "answer"], create: Callable[[], Awaitable[Any]]) -> Description:
        self._check_open()
        try:
            await self._run(self._native.setLocalDescription, await self._run(create))
        except Exception:
            raise (refused(kind) if self._state is not PeerState.CLOSED else closed()) from None
        self._check_open()
        self.gathered(None)
        return Description(kind, self._native.localDescription.sdp)

    async def _apply(self, subject: str, function: Callable[[Any], Awaitable[Any]], argument: Any) -> None:
        """Call a function with input of the other end. Errors of aiortc are not shown: they may quote the input."""
        try:
            await self._run(function, argument)
        except Exception as error:
            self._check_open()
            raise unusable(subject, f"aiortc refuses it ({type(error).__name__})") from None

    async def _add_candidate(self, candidate: IceCandidate) -> None:
        native = None
        if candidate.text:
            native = aiortc.sdp.candidate_from_sdp(candidate.text.removeprefix("candidate:"))
            native.sdpMid, native.sdpMLineIndex = candidate.mid, candidate.line
        await self._native.addIceCandidate(native)

    def _handle_state(self) -> None:
        state = PeerState(self._native.connectionState)
        if state is PeerState.CLOSED:
            self.close()
        else:
            self.entered(state)


class _Link:
    """Native end of a channel."""

    def __init__(self, loop: Loop, channel: Any) -> None:
        self._loop = loop
        self._native = channel

    @property
    def buffered(self) -> int:
        """Bytes queued and not yet sent."""
        size: int = self._native.bufferedAmount
        return size

    def transmit(self, data: bytes | str) -> None:
        """Queue a message."""
        if self._native.bufferedAmount > MAX_QUEUED:
            raise BufferError("the send queue is full")
        with self._loop.entered():
            self._native.send(data)

    def shut(self) -> None:
        """Close the channel after the messages that are queued."""
        with self._loop.entered():
            self._native.close()


def _configuration(options: PeerOptions) -> Any:
    servers = [aiortc.RTCIceServer(list(s.urls), s.username or None, s.credential or None) for s in options.servers]
    policy = aiortc.RTCIceTransportPolicy.RELAY if options.relay_only else aiortc.RTCIceTransportPolicy.ALL
    return aiortc.RTCConfiguration(iceServers=servers, iceTransportPolicy=policy)

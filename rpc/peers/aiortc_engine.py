"""Peer connections on aiortc, where wrtc has no build. It runs on trio-asyncio; no other module sees asyncio."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Literal

import aioice.ice
import aiortc
import aiortc.sdp
import av
import trio
import trio_asyncio

from rpc.peers.channel import MAX_QUEUED, MessageChannel
from rpc.peers.connection import ConnectionBase, closed, refused
from rpc.peers.intake import unusable
from rpc.peers.media.video import Senders
from rpc.peers.port import (
    HIGH_WATER,
    Candidate,
    Channel,
    Description,
    PathReport,
    PeerOptions,
    PeerState,
    VideoFrame,
    VideoReport,
    VideoTrack,
)
from rpc.peers.servers import check_servers

CLOSING_LIMIT: Final = 5.0  # seconds to close a connection, and all of them at the end of the engine
CODECS: Final = ("video/VP8", "video/H264", "video/rtx")
CONSENT_INTERVAL: Final = 1.0  # seconds; six checks without answer end a connection, as soon as with libwebrtc

_log = logging.getLogger("rpc.peers")


@asynccontextmanager
async def open_engine() -> AsyncIterator[AiortcEngine]:
    """Run an engine until the block ends; then close its connections, shielded, within CLOSING_LIMIT."""
    aioice.ice.CONSENT_INTERVAL = CONSENT_INTERVAL
    for name in ("aiortc", "aioice"):
        logging.getLogger(name).setLevel(logging.WARNING)  # at DEBUG they log passwords
    async with trio_asyncio.open_loop() as loop:
        loop.set_exception_handler(_log_failure)
        async with trio.open_nursery() as nursery:
            engine = AiortcEngine(loop, nursery)
            try:
                yield engine
            finally:
                with trio.move_on_after(CLOSING_LIMIT, shield=True):
                    await engine._close_all()
                nursery.cancel_scope.cancel()
        with trio.move_on_after(CLOSING_LIMIT, shield=True):
            await engine._loop.close_sockets()


class AiortcEngine:
    """Factory of peer connections, created by `open_engine`."""

    name: Final = "aiortc"

    def __init__(self, loop: Any, nursery: trio.Nursery) -> None:
        self._loop = _Loop(loop)
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


class _Loop:
    """The event loop on which aiortc runs."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let functions of aiortc that are called in the block find the loop, in any task."""
        token = trio_asyncio.current_loop.set(self._loop)
        try:
            yield
        finally:
            trio_asyncio.current_loop.reset(token)

    async def run(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Run a coroutine function of aiortc; cancellation cancels it."""
        return await self._loop.run_aio_coroutine(function(*arguments))

    @staticmethod
    async def wait(event: trio.Event) -> None:
        """Wait for an event in a coroutine of aiortc."""
        await trio_asyncio.trio_as_aio(event.wait)()

    async def close_sockets(self) -> None:
        """Close what is left of calls that were cancelled while they opened sockets; aiortc forgets those."""
        for transport in list(self._loop._transports.values()):
            transport.abort()
        await self._loop.synchronize()


class AiortcPeer(ConnectionBase):
    """Implementation of `port.PeerConnection`. The candidates of this end are in its descriptions."""

    def __init__(self, loop: _Loop, configuration: Any, on_close: Callable[[AiortcPeer], None]) -> None:
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
        self._senders = Senders(lambda: _Sender(loop, self._native))

    def channel(self, label: str, number: int) -> Channel:
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
        return self._senders.add(stream)

    async def offer(self) -> Description:
        """Make an offer, apply it and gather all candidates, see `port.PeerConnection`."""
        return await self._describe("offer", self._native.createOffer)

    async def answer(self) -> Description:
        """Make the answer, apply it and gather all candidates, see `port.PeerConnection`."""
        description = await self._describe("answer", self._native.createAnswer)
        self._senders.negotiated()
        return description

    async def accept(self, description: Description) -> None:
        """Apply the description of the other end. Raises MachineError (INVALID) if it cannot be used."""
        self._check_open()
        checked = self._intake.description(description)
        native = aiortc.RTCSessionDescription(checked.sdp, checked.kind)
        await self._apply("session description", self._native.setRemoteDescription, native)
        self._refuse_media()
        self._senders.negotiated()

    def _refuse_media(self) -> None:
        """Receive nothing: media would only cost decoding."""
        own = self._senders.transceivers()
        for transceiver in self._native.getTransceivers():
            if transceiver not in own:
                transceiver.direction = "inactive"

    async def add_candidate(self, candidate: Candidate) -> None:
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
            self._senders.end()
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

    async def _add_candidate(self, candidate: Candidate) -> None:
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

    def __init__(self, loop: _Loop, channel: Any) -> None:
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


class _Source(aiortc.MediaStreamTrack):  # type: ignore[misc]
    """The frames of one sender: only the newest one waits."""

    kind = "video"

    def __init__(self, loop: _Loop) -> None:
        super().__init__()
        self._loop = loop
        self._newest: tuple[VideoFrame, float] | None = None
        self._arrival = trio.Event()

    def put(self, frame: VideoFrame) -> None:
        """Replace the frame that waits."""
        self._newest = frame, trio.current_time()
        self._arrival.set()

    def stop(self) -> None:
        """End the sender, which waits for frames. Idempotent.

        aiortc itself cancels it once, without effect while a frame is encoded: a thread cannot be cancelled.
        """
        super().stop()
        self._arrival.set()

    async def recv(self) -> av.VideoFrame:
        """Return the next frame to aiortc, which encodes it in a thread. Raises MediaStreamError after the end."""
        while self._newest is None:
            if self.readyState != "live":
                raise aiortc.mediastreams.MediaStreamError
            self._arrival = trio.Event()
            await self._loop.wait(self._arrival)
        (frame, at), self._newest = self._newest, None
        picture = _av_frame(frame)
        picture.pts = int(at * aiortc.mediastreams.VIDEO_CLOCK_RATE)
        picture.time_base = aiortc.mediastreams.VIDEO_TIME_BASE
        return picture


class _Sender:
    """Implementation of `video.Sender`. aiortc adapts the rate, not the size, and only if the other end reports it."""

    def __init__(self, loop: _Loop, connection: Any) -> None:
        self.sending = False
        with loop.entered():
            self._source = _Source(loop)
            self.transceiver = connection.addTransceiver(self._source, "sendonly")
        codecs = aiortc.RTCRtpSender.getCapabilities("video").codecs
        self.transceiver.setCodecPreferences([codec for codec in codecs if codec.mimeType in CODECS])

    def accepted(self) -> bool:
        """See `Sender.accepted`."""
        return bool(self.transceiver.currentDirection == "sendonly")

    @property
    def stopped(self) -> bool:
        """See `Sender.stopped`."""
        return bool(self.transceiver.stopped)

    def start(self, stream: str) -> None:
        """See `Sender.start`."""
        self.transceiver.sender._stream_id = stream
        self.transceiver.direction = "sendonly"

    def stop(self) -> None:
        """See `Sender.stop`."""
        self.transceiver.direction = "inactive"

    def write(self, frame: VideoFrame) -> None:
        """See `Sender.write`."""
        self._source.put(frame)

    async def report(self) -> VideoReport:
        """See `Sender.report`."""
        await trio.lowlevel.checkpoint()
        return VideoReport(codec=self.transceiver._codecs[0].mimeType if self.sending else None)


def _av_frame(frame: VideoFrame) -> av.VideoFrame:
    """Copy a frame to one of PyAV, whose rows may be padded."""
    picture = av.VideoFrame(frame.width, frame.height, "yuv420p")
    begin = 0
    for plane in picture.planes:
        width, height = plane.width, plane.height
        data = frame.planes[begin : begin + width * height]
        begin += width * height
        if plane.line_size != width:
            padding = bytes(plane.line_size - width)
            data = b"".join(data[row : row + width] + padding for row in range(0, width * height, width))
        plane.update(data)
    return picture


def _configuration(options: PeerOptions) -> Any:
    servers = [aiortc.RTCIceServer(list(s.urls), s.username or None, s.credential or None) for s in options.servers]
    policy = aiortc.RTCIceTransportPolicy.RELAY if options.relay_only else aiortc.RTCIceTransportPolicy.ALL
    return aiortc.RTCConfiguration(iceServers=servers, iceTransportPolicy=policy)


def _log_failure(_loop: Any, context: dict[str, Any]) -> None:
    """Log an error in a callback or task of aiortc, which hostile peers can cause; it ends at most their connection."""
    _log.warning("aiortc: %s: %r", context.get("message"), context.get("exception"))

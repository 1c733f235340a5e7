"""Peer connections on libwebrtc, through the native module of wrtc."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Literal

import trio

from rpc.peers.channel import MessageChannel
from rpc.peers.connection import ConnectionBase, closed, refused
from rpc.peers.intake import unusable
from rpc.peers.media.tracks import Senders
from rpc.peers.media.wrtc_tracks import WrtcSound, WrtcVideo
from rpc.peers.port import (
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
from rpc.peers.servers import check_servers, invalid_servers
from rpc.peers.wrtc_mailbox import Mailbox
from rpc.peers.wrtc_native import enums, native
from schema import MachineError

CLOSING_LIMIT: Final = 5.0  # seconds to close all connections; one takes 1 ms


@asynccontextmanager
async def open_engine() -> AsyncIterator[WrtcEngine]:
    """Run an engine until the block ends; then close its connections, shielded, within CLOSING_LIMIT."""
    mailbox = Mailbox(native.Mailbox())
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(mailbox.run)
            engine = WrtcEngine(mailbox)
            try:
                yield engine
            finally:
                with trio.move_on_after(CLOSING_LIMIT, shield=True):
                    await engine._close_all()
                nursery.cancel_scope.cancel()
    finally:
        mailbox.close()


class WrtcEngine:
    """Factory of peer connections, created by `open_engine`."""

    name: Final = "wrtc"

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._peers: set[WrtcPeer] = set()

    def connect(self, options: PeerOptions) -> WrtcPeer:
        """Return a new peer connection. Raises MachineError (INVALID) for ICE servers that are not valid."""
        check_servers(options)
        try:
            connection = native.RTCPeerConnection(_configuration(options))
        except Exception as error:
            raise invalid_servers(f"libwebrtc refuses them ({type(error).__name__})") from None
        peer = WrtcPeer(self._mailbox, connection, self._peers.discard)
        self._peers.add(peer)
        return peer

    async def _close_all(self) -> None:
        for peer in list(self._peers):
            peer.close()
            await trio.lowlevel.checkpoint()


class WrtcPeer(ConnectionBase):
    """Implementation of `port.PeerConnection`."""

    def __init__(self, mailbox: Mailbox, connection: Any, on_close: Callable[[WrtcPeer], None]) -> None:
        super().__init__()
        self._mailbox = mailbox
        self._native = connection
        self._on_close = on_close
        self._bound = [mailbox.bind(connection, self._handle)]
        self._videos = Senders[VideoFrame](lambda: WrtcVideo(connection, self._call), MAX_TRACKS, "videos")
        self._sounds = Senders[Sound](lambda: WrtcSound(connection, self._call), MAX_SOUNDS, "sounds")

    def channel(self, label: str, number: int) -> PeerChannel:
        """Return a channel with a number that both ends have agreed on; call before the first description."""
        self._check_open()
        link = _Link(
            self._native.createDataChannel(label, True, None, None, "", True, number, enums.RTCPriorityType.low)
        )
        channel = MessageChannel(label, link)
        self._channels.append(channel)
        self._bound.append(self._mailbox.bind(link.native, partial(_handle_channel, link, channel)))
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
        """Make an offer and apply it, see `port.PeerConnection`."""
        return await self._describe("offer", self._native.createOffer, False)

    async def answer(self) -> Description:
        """Make the answer and apply it, see `port.PeerConnection`."""
        description = await self._describe("answer", self._native.createAnswer)
        self._negotiated()
        return description

    async def accept(self, description: Description) -> None:
        """Apply the description of the other end. Raises MachineError (INVALID) if it cannot be used."""
        checked = self._intake.description(description)
        await self._apply(
            "session description",
            self._native.setRemoteDescription,
            native.RTCSessionDescriptionInit(checked.kind, checked.sdp),
        )
        self._refuse_media()
        self._negotiated()

    def _refuse_media(self) -> None:
        """Receive nothing: media would only cost decoding."""
        own = {t._id for senders in (self._videos, self._sounds) for t in senders.transceivers()}
        for transceiver in self._native.getTransceivers():
            if transceiver._id not in own and not (transceiver.stopped or transceiver.stopping):
                transceiver.direction = enums.RTCRtpTransceiverDirection.inactive

    def _negotiated(self) -> None:
        self._native._applyDescriptions()  # makes the negotiated directions visible
        self._videos.negotiated()
        self._sounds.negotiated()

    async def add_candidate(self, candidate: IceCandidate) -> None:
        """Add a candidate of the other end, see `port.PeerConnection`."""
        checked = self._intake.candidate(candidate)
        if checked is None:
            await trio.lowlevel.checkpoint()
            return
        await self._apply(
            "candidate", self._native.addIceCandidate, checked.text, checked.mid, checked.line, checked.fragment
        )

    async def report(self) -> PathReport:
        """Return the path in use."""
        return path_report(json.loads(await self._call(self._native.getStats)))

    def close(self) -> None:
        """Close the connection and its channels. Idempotent."""
        if self._state is PeerState.CLOSED:
            return
        for number in self._bound:
            self._mailbox.release(number)
        self._videos.end()
        self._sounds.end()
        self._native.close()
        self.entered(PeerState.CLOSED)
        self._mailbox.abandon(self, closed())
        self._on_close(self)

    async def _describe(
        self, kind: Literal["offer", "answer"], create: Callable[..., None], *arguments: Any
    ) -> Description:
        try:
            sdp: str = (await self._call(create, *arguments)).sdp
            await self._call(self._native.setLocalDescription, native.RTCSessionDescriptionInit(kind, sdp))
        except MachineError:
            raise
        except Exception:
            raise refused(kind) from None
        return Description(kind, sdp)

    async def _apply(self, subject: str, method: Callable[..., None], *arguments: Any) -> None:
        """Call a native method with input of the other end. Native errors are not shown: they quote the input."""
        try:
            await self._call(method, *arguments)
        except MachineError:
            raise
        except Exception as error:
            raise unusable(subject, f"libwebrtc refuses it ({type(error).__name__})") from None

    async def _call(self, method: Callable[..., None], *arguments: Any) -> Any:
        self._check_open()
        return await self._mailbox.call(self, method, *arguments)

    def _handle(self, name: str, arguments: tuple[Any, ...]) -> None:
        match name:
            case "icecandidate":
                fields = arguments[0].kwargs()
                if fields["candidate"]:
                    self.gathered(_local_candidate(fields))
            case "_gatheringcomplete":
                self.gathered(None)
            case "_transportstatechange":
                self._handle_state(*arguments)
            case "datachannel":
                arguments[0].close()  # only agreed channels are used

    def _handle_state(self, transport: Any, state: Any, _dispatch: bool, _ice: Any, connection: Any) -> None:
        if connection is not None:
            self.entered(PeerState(connection.value))
        if state == "closed" and isinstance(transport, native.RTCDtlsTransport):
            # The other end has closed the connection, unless the transport was replaced when media were bundled.
            sctp = self._native.sctp
            if sctp is not None and sctp.transport._id == transport._id:
                self.close()


class _Link:
    """Native end of a channel."""

    def __init__(self, channel: Any) -> None:
        self.native = channel

    @property
    def buffered(self) -> int:
        """Bytes queued and not yet sent."""
        size: int = self.native.bufferedAmount
        return size

    def transmit(self, data: bytes | str) -> None:
        """Queue a message."""
        if isinstance(data, str):
            self.native.send(data.encode(), False)
        else:
            self.native.send(data, True)

    def shut(self) -> None:
        """Close the channel after the messages that are queued."""
        self.native.close()


def _handle_channel(link: _Link, channel: MessageChannel, name: str, arguments: tuple[Any, ...]) -> None:
    match name:
        case "message":
            channel.arrived(arguments[0])
        case "_sent":
            link.native._decreaseBufferedAmount(arguments[0])
            channel.drained()
        case "open":
            link.native._surfaceState(arguments[0])
            channel.opened()
        case "closing" | "close":
            link.native._surfaceState(arguments[0])
            channel.ended()


def _configuration(options: PeerOptions) -> Any:
    configuration = native.ConfigurationInit()
    servers = []
    for server in options.servers:
        entry = native.IceServerInit()
        entry.urls = list(server.urls)
        if server.username:
            entry.username = server.username
            entry.credential = server.credential
        servers.append(entry)
    configuration.iceServers = servers
    if options.relay_only:
        configuration.iceTransportPolicy = enums.RTCIceTransportPolicy.relay
    return configuration


def _local_candidate(fields: dict[str, Any]) -> IceCandidate:
    return IceCandidate(fields["candidate"], fields["sdp_mid"], fields["sdp_m_line_index"], fields["username_fragment"])


def path_report(statistics: list[dict[str, Any]]) -> PathReport:
    """Return the path of the selected pair of candidates in the statistics of libwebrtc."""
    entries = {entry["id"]: entry for entry in statistics}
    selected = next((e.get("selectedCandidatePairId") for e in statistics if e["type"] == "transport"), None)
    pair = entries.get(selected or "")
    if pair is None:
        return PathReport()
    local, remote = entries.get(pair["localCandidateId"], {}), entries.get(pair["remoteCandidateId"], {})
    return PathReport(
        local=local.get("candidateType"),
        remote=remote.get("candidateType"),
        protocol=local.get("protocol"),
        remote_address=remote.get("address"),
        round_trip_s=pair.get("currentRoundTripTime"),
        bytes_sent=pair.get("bytesSent", 0),
        bytes_received=pair.get("bytesReceived", 0),
        checks=pair.get("requestsSent"),
        answers=pair.get("responsesReceived"),
    )

"""Outgoing video and sound on libwebrtc, which encodes in its own threads and adapts rate and size to the link."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final

import trio

from rpc.peers.port import MAX_SOUND, Sound, TrackReport, VideoFrame
from rpc.peers.wrtc_native import enums, native

VIDEO_CODECS: Final = ("video/VP8", "video/H264", "video/rtx")
SOUND_CODECS: Final = ("audio/opus",)
"""Codecs to offer. Every client has VP8 and Opus. Others make all descriptions longer, which have a limit."""


class _WrtcSender:
    """What all senders have of `tracks.Sender`. `call` calls an asynchronous method of the connection."""

    kind: ClassVar[str]
    codecs: ClassVar[tuple[str, ...]]

    def __init__(self, connection: Any, call: Callable[..., Awaitable[Any]]) -> None:
        self._connection = connection
        self._call = call
        self.sending = False
        self._source = native.TrackGenerator(self.kind)
        self._direction = enums.RTCRtpTransceiverDirection
        init = native.RtpTransceiverInit()
        init.direction = self._direction.sendonly
        self.transceiver = connection.addTransceiver(self._source.track, init)
        capabilities = native.RTCRtpSender.getCapabilities(self.kind).codecs
        self.transceiver.setCodecPreferences([codec for codec in capabilities if codec.mimeType in self.codecs])

    def accepted(self) -> bool:
        """Return whether the other end receives, as negotiated last."""
        return bool(self.transceiver.currentDirection == self._direction.sendonly)

    @property
    def stopped(self) -> bool:
        """Whether the other end has refused the place of this sender in the description, which cannot be undone."""
        return bool(self.transceiver.stopped or self.transceiver.stopping)

    def start(self, stream: str) -> None:
        """Send a stream from the next negotiation on."""
        self.transceiver.sender.setStreams([stream])
        self.transceiver.direction = self._direction.sendonly

    def stop(self) -> None:
        """Send nothing from now on. The encoder ends with the next negotiation; until then it gets no frames."""
        if not self.stopped:
            self.transceiver.direction = self._direction.inactive

    async def report(self) -> TrackReport:
        """Return what the encoder does now."""
        statistics = json.loads(await self._call(self.transceiver.sender.getStats))
        return track_report(statistics)


class WrtcVideo(_WrtcSender):
    """Implementation of `tracks.Sender` for video."""

    kind = "video"
    codecs = VIDEO_CODECS

    def write(self, frame: VideoFrame) -> None:
        """Pass a frame to the encoder, or drop it."""
        width, height = frame.width, frame.height
        size = width * height
        layout = [(0, width), (size, width // 2), (size * 5 // 4, width // 2)]  # offset and stride of each plane
        buffer = native.VideoFrameBuffer.fromData("I420", width, height, frame.planes, layout)
        self._source.writeVideo(buffer, int(trio.current_time() * 1e6), 0)


class WrtcSound(_WrtcSender):
    """Implementation of `tracks.Sender` for sound. libwebrtc resamples it, and cuts it to pieces of 10 ms."""

    kind = "audio"
    codecs = SOUND_CODECS

    def write(self, frame: Sound) -> None:
        """Pass a frame to the encoder, or drop it."""
        frames = min(frame.frames, int(frame.rate * MAX_SOUND))
        samples = frame.samples[-frames * frame.channels * 2 :] if frames else b""
        self._source.writeAudio(samples, frame.rate, frame.channels, frames)


def track_report(statistics: list[dict[str, Any]]) -> TrackReport:
    """Return what the statistics of libwebrtc say about the stream of one sender."""
    stream = next((entry for entry in statistics if entry["type"] == "outbound-rtp"), None)
    if stream is None:
        return TrackReport()
    codec = next((entry for entry in statistics if entry["id"] == stream.get("codecId")), {})
    return TrackReport(
        codec=codec.get("mimeType"),
        width=stream.get("frameWidth"),
        height=stream.get("frameHeight"),
        frames=stream.get("framesEncoded"),
        encoding_s=stream.get("totalEncodeTime"),
        target_rate=stream.get("targetBitrate"),
        limited_by=stream.get("qualityLimitationReason"),
        bytes_sent=stream.get("bytesSent", 0),
    )

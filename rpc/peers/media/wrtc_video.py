"""Outgoing video on libwebrtc, which encodes in its own threads and adapts rate and size to the link."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from rpc.peers.port import VideoFrame, VideoReport
from rpc.peers.wrtc_native import enums, native

CODECS: Final = ("video/VP8", "video/H264", "video/rtx")
"""Codecs to offer. Every client has VP8; each further codec makes all descriptions longer, which have a limit."""


class WrtcSender:
    """Implementation of `video.Sender`. `call` calls an asynchronous method of the connection."""

    def __init__(self, connection: Any, call: Callable[..., Awaitable[Any]]) -> None:
        self._connection = connection
        self._call = call
        self.sending = False
        self._source = native.TrackGenerator("video")
        self._direction = enums.RTCRtpTransceiverDirection
        init = native.RtpTransceiverInit()
        init.direction = self._direction.sendonly
        self.transceiver = connection.addTransceiver(self._source.track, init)
        capabilities = native.RTCRtpSender.getCapabilities("video").codecs
        self.transceiver.setCodecPreferences([codec for codec in capabilities if codec.mimeType in CODECS])

    def accepted(self) -> bool:
        """See `Sender.accepted`."""
        return bool(self.transceiver.currentDirection == self._direction.sendonly)

    @property
    def stopped(self) -> bool:
        """See `Sender.stopped`."""
        return bool(self.transceiver.stopped or self.transceiver.stopping)

    def start(self, stream: str) -> None:
        """See `Sender.start`."""
        self.transceiver.sender.setStreams([stream])
        self.transceiver.direction = self._direction.sendonly

    def stop(self) -> None:
        """See `Sender.stop`. The encoder ends with the next negotiation; until then it gets no frames."""
        if not self.stopped:
            self.transceiver.direction = self._direction.inactive

    def write(self, frame: VideoFrame) -> None:
        """See `Sender.write`."""
        width, height = frame.width, frame.height
        size = width * height
        layout = [(0, width), (size, width // 2), (size * 5 // 4, width // 2)]  # offset and stride of each plane
        buffer = native.VideoFrameBuffer.fromData("I420", width, height, frame.planes, layout)
        self._source.writeVideo(buffer, int(trio.current_time() * 1e6), 0)

    async def report(self) -> VideoReport:
        """See `Sender.report`."""
        statistics = json.loads(await self._call(self.transceiver.sender.getStats))
        return video_report(statistics)


def video_report(statistics: list[dict[str, Any]]) -> VideoReport:
    """Return what the statistics of libwebrtc say about the stream of one sender."""
    stream = next((entry for entry in statistics if entry["type"] == "outbound-rtp"), None)
    if stream is None:
        return VideoReport()
    codec = next((entry for entry in statistics if entry["id"] == stream.get("codecId")), {})
    return VideoReport(
        codec=codec.get("mimeType"),
        width=stream.get("frameWidth"),
        height=stream.get("frameHeight"),
        frames=stream.get("framesEncoded"),
        encoding_s=stream.get("totalEncodeTime"),
        target_rate=stream.get("targetBitrate"),
        limited_by=stream.get("qualityLimitationReason"),
        bytes_sent=stream.get("bytesSent", 0),
    )

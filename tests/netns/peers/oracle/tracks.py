"""Outgoing video and sound on aiortc, which asks for frames and encodes them in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, Generic

import aiortc
import av
import trio

from rpc.peers.media.tracks import Frame
from rpc.peers.port import MAX_SOUND, Sound, TrackReport, VideoFrame
from tests.netns.peers.oracle.loop import Loop

CODECS: Final = ("video/VP8", "video/H264", "video/rtx", "audio/opus")
SOUND_RATE: Final = 48_000  # samples per second of Opus


class _Source(aiortc.MediaStreamTrack, Generic[Frame]):  # type: ignore[misc]
    """The frames of one sender, which aiortc asks for the next one, and encodes it in a thread."""

    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self._loop = loop
        self._frames: deque[tuple[Frame, float]] = deque()  # with the times of their arrival
        self._arrival = trio.Event()

    def put(self, frame: Frame) -> None:
        """Queue a frame, and drop what is too old."""
        self._frames.append((frame, trio.current_time()))
        self._arrival.set()

    def stop(self) -> None:
        """End the sender, which waits for frames. Idempotent.

        aiortc itself cancels it once, without effect while a frame is encoded: a thread cannot be cancelled.
        """
        super().stop()
        self._arrival.set()

    async def _next(self) -> tuple[Frame, float]:
        """Return the next frame and its time. Raises MediaStreamError after the end."""
        while not self._frames:
            if self.readyState != "live":
                raise aiortc.mediastreams.MediaStreamError
            self._arrival = trio.Event()
            await self._loop.wait(self._arrival)
        return self._frames.popleft()


class VideoSource(_Source[VideoFrame]):
    """Pictures: only the newest one waits."""

    kind = "video"

    def put(self, frame: VideoFrame) -> None:
        """Replace the frame that waits."""
        self._frames.clear()
        super().put(frame)

    async def recv(self) -> av.VideoFrame:
        """Return the next picture to aiortc."""
        frame, at = await self._next()
        picture = _av_frame(frame)
        picture.pts = int(at * aiortc.mediastreams.VIDEO_CLOCK_RATE)
        picture.time_base = aiortc.mediastreams.VIDEO_TIME_BASE
        return picture


class SoundSource(_Source[Sound]):
    """Sound, in pieces of 20 ms at the rate of Opus."""

    kind = "audio"

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._format: tuple[int, int] | None = None  # rate and channels that the resampler takes
        self._resampler: Any = None
        self._ready: deque[Any] = deque()
        self._sent = 0  # samples

    def put(self, frame: Sound) -> None:
        """Queue samples, and drop the oldest ones."""
        super().put(frame)
        while len(self._frames) > 1 and sum(sound.frames / sound.rate for sound, _ in self._frames) > MAX_SOUND:
            self._frames.popleft()

    async def recv(self) -> av.AudioFrame:
        """Return the next piece to aiortc."""
        while not self._ready:
            sound, _ = await self._next()
            self._ready.extend(self._resampled(sound))
        piece = self._ready.popleft()
        piece.pts, piece.time_base = self._sent, Fraction(1, SOUND_RATE)
        self._sent += piece.samples
        return piece

    def _resampled(self, sound: Sound) -> list[Any]:
        layout = "mono" if sound.channels == 1 else "stereo"
        if self._format != (sound.rate, sound.channels):
            self._format = sound.rate, sound.channels
            self._resampler = av.AudioResampler("s16", "stereo", SOUND_RATE, frame_size=SOUND_RATE // 50)
        samples = av.AudioFrame("s16", layout, min(sound.frames, int(sound.rate * MAX_SOUND)))
        samples.sample_rate = sound.rate
        samples.planes[0].update(sound.samples[-samples.samples * 2 * sound.channels :])
        pieces: list[Any] = self._resampler.resample(samples)
        return pieces


class AiortcSender(Generic[Frame]):
    """Implementation of `tracks.Sender`. aiortc adapts the rate, not the size, and only if the other end reports it."""

    def __init__(self, loop: Loop, connection: Any, source: Callable[[Loop], _Source[Frame]]) -> None:
        self.sending = False
        with loop.entered():
            self._source = source(loop)
            self.transceiver = connection.addTransceiver(self._source, "sendonly")
        codecs = aiortc.RTCRtpSender.getCapabilities(self._source.kind).codecs
        self.transceiver.setCodecPreferences([codec for codec in codecs if codec.mimeType in CODECS])

    def accepted(self) -> bool:
        """Return whether the other side takes the track."""
        return bool(self.transceiver.currentDirection == "sendonly")

    @property
    def stopped(self) -> bool:
        """Whether the track has ended for good."""
        return bool(self.transceiver.stopped)

    def start(self, stream: str) -> None:
        """Send the track, as part of a stream."""
        self.transceiver.sender._stream_id = stream
        self.transceiver.direction = "sendonly"

    def stop(self) -> None:
        """Stop sending, so that it can be started again."""
        self.transceiver.direction = "inactive"

    def write(self, frame: Frame) -> None:
        """Queue a frame to be sent."""
        self._source.put(frame)

    async def report(self) -> TrackReport:
        """Return the codec that is in use."""
        await trio.lowlevel.checkpoint()
        return TrackReport(codec=self.transceiver._codecs[0].mimeType if self.sending else None)


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

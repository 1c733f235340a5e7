"""A simulated loudspeaker that takes as long as the audio lasts, and counts what it has played."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from engine import AudioInfo, AudioOut, AudioProperties, Context, Extra, model
from models.fake.common.simulated import SimulatedResource
from schema import ErrorKind, MachineError

SAMPLE_BYTES: Final = {"pcm16": 2, "pcm32": 4, "pcm32_float": 4}
RATE: Final = 16000  # Hz
CHANNELS: Final = 1


@model("rdk:builtin:fake")
class FakeAudioOut(SimulatedResource, AudioOut):
    """The status reports how much it has played. Only uncompressed codecs; default: 16 bits, 16 kHz, one channel."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._played_bytes = 0
        self._played_seconds = 0.0

    def _bytes_per_second(self, info: AudioInfo | None) -> int:
        info = info or AudioInfo()
        width = SAMPLE_BYTES.get(info.codec or "pcm16")
        if width is None:
            raise MachineError(
                f"codec {info.codec!r} is not supported",
                kind=ErrorKind.INVALID,
                remedy=f"use {', '.join(SAMPLE_BYTES)}",
            )
        return width * (info.sample_rate_hz or RATE) * (info.num_channels or CHANNELS)

    async def play(self, audio_data: bytes, audio_info: AudioInfo | None = None, *, extra: Extra = None) -> None:
        """Play audio; return when it has been played."""
        rate = self._bytes_per_second(audio_info)
        await self._play_chunk(audio_data, rate, await self.access())

    async def play_stream(
        self, audio_chunks: AsyncIterator[bytes], audio_info: AudioInfo | None = None, *, extra: Extra = None
    ) -> None:
        """Play chunks one after the other."""
        rate = self._bytes_per_second(audio_info)
        end = await self.access()
        async for chunk in audio_chunks:
            end = await self._play_chunk(chunk, rate, max(end, self.world.now()))

    async def _play_chunk(self, data: bytes, rate: int, begin: float) -> float:
        end = begin + len(data) / rate
        await self.world.sleep_until(end)
        self._played_bytes += len(data)
        self._played_seconds += len(data) / rate
        return end

    async def get_properties(self, *, extra: Extra = None) -> AudioProperties:
        """Return the codecs and the default sample rate and number of channels."""
        await self.access()
        return AudioProperties(tuple(SAMPLE_BYTES), RATE, CHANNELS)

    async def get_status(self) -> Mapping[str, Any]:
        """Return how many bytes and seconds have been played."""
        await self.access()
        return {"played_bytes": self._played_bytes, "played_seconds": self._played_seconds}

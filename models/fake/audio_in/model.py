"""A simulated microphone that records a tone."""

from __future__ import annotations

import array
import math
import sys
import time
from collections.abc import AsyncGenerator
from typing import ClassVar, Final

from engine import Attributes, AudioChunk, AudioIn, AudioInfo, AudioProperties, AudioResponse, Extra, model
from models.fake.audio_in.attributes import FakeAudioInConfig
from models.fake.common.simulated import SimulatedResource
from schema import ErrorKind, MachineError

CODEC: Final = "pcm16"
CHUNK: Final = 0.1  # seconds of audio in each response
LOUDNESS: Final = 0.25  # share of full scale


@model("rdk:builtin:fake")
class FakeAudioIn(SimulatedResource, AudioIn):
    """Streams one channel of 16-bit little-endian samples in real time."""

    Config: ClassVar[type[Attributes]] = FakeAudioInConfig

    async def get_audio(
        self,
        duration_seconds: float = 0.0,
        codec: str = "",
        request_id: str = "",
        previous_timestamp_nanoseconds: int = 0,
        *,
        extra: Extra = None,
    ) -> AsyncGenerator[AudioResponse, None]:
        """Stream a chunk every tenth of a second, from now on; no earlier audio is stored."""
        if codec not in ("", CODEC):
            raise MachineError(f"codec {codec!r} is not supported", kind=ErrorKind.INVALID, remedy=f"use {CODEC}")
        if duration_seconds < 0:
            raise MachineError(
                f"a duration of {duration_seconds:g} s is negative", kind=ErrorKind.INVALID, remedy="use 0 or more"
            )
        start_time, epoch = await self.access(), time.time_ns()
        rate: int = self.attributes.sample_rate_hz
        info = AudioInfo(CODEC, rate, 1)
        total = math.inf if duration_seconds == 0 else round(duration_seconds * rate)
        sent, sequence = 0, 0
        while sent < total:
            count = int(min(round(CHUNK * rate), total - sent))
            await self.world.sleep_until(start_time + (sent + count) / rate)
            start, end = (epoch + n * 1_000_000_000 // rate for n in (sent, sent + count))
            chunk = AudioChunk(self._samples(sent, count, rate), info, start, end, sequence)
            yield AudioResponse(chunk, request_id)
            sent, sequence = sent + count, sequence + 1

    def _samples(self, first: int, count: int, rate: int) -> bytes:
        step = 2 * math.pi * self.attributes.tone_hz / rate
        samples = array.array("h", (round(32767 * LOUDNESS * math.sin(step * n)) for n in range(first, first + count)))
        if sys.byteorder == "big":
            samples.byteswap()
        return samples.tobytes()

    async def get_properties(self, *, extra: Extra = None) -> AudioProperties:
        """Return the only codec, the sample rate and the number of channels."""
        await self.access()
        return AudioProperties((CODEC,), self.attributes.sample_rate_hz, 1)

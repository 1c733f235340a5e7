"""Audio input: a microphone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import ClassVar

from engine.components.media.audio import AudioInfo, AudioProperties
from engine.resource import Component, Extra
from schema import API


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """Samples between two times (nanoseconds since 1970); `sequence` counts chunks from 0."""

    audio_data: bytes
    audio_info: AudioInfo = field(default_factory=AudioInfo)
    start_timestamp_nanoseconds: int = 0
    end_timestamp_nanoseconds: int = 0
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class AudioResponse:
    """A chunk, and the identifier of the request that it answers."""

    audio: AudioChunk
    request_id: str = ""


class AudioIn(Component):
    """A device that records audio."""

    API: ClassVar[API] = API("rdk", "component", "audio_in")

    def get_audio(
        self,
        duration_seconds: float = 0.0,
        codec: str = "",
        request_id: str = "",
        previous_timestamp_nanoseconds: int = 0,
        *,
        extra: Extra = None,
    ) -> AsyncGenerator[AudioResponse, None]:
        """Yield audio as it is recorded, for `duration_seconds` or until closed if 0.

        Continues after `previous_timestamp_nanoseconds` (since 1970) if that audio is still buffered; 0 starts now.
        Each response carries `request_id`.
        """
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> AudioProperties:
        """Return the codecs, sample rate (Hz) and number of channels of this device."""
        raise NotImplementedError

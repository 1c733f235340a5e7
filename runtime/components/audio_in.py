"""Audio input: a microphone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import ClassVar

from runtime.components.audio import AudioInfo, AudioProperties
from runtime.resource import Component, Extra
from schema.names import API


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """Samples from one instant to another (nanoseconds since 1970); `sequence` counts from 0."""

    audio_data: bytes
    audio_info: AudioInfo = field(default_factory=AudioInfo)
    start_timestamp_nanoseconds: int = 0
    end_timestamp_nanoseconds: int = 0
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class AudioResponse:
    """A chunk and the identifier of the request it answers."""

    audio: AudioChunk
    request_id: str = ""


class AudioIn(Component):
    """Something that hears."""

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
        """Yield audio as it is heard: `duration_seconds` of it, or without end if 0.

        Continues after `previous_timestamp_nanoseconds` (since 1970) if that is still held; 0 starts now. Each response
        carries `request_id`.
        """
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> AudioProperties:
        """Codecs, sample rate (Hz) and channels of this device."""
        raise NotImplementedError

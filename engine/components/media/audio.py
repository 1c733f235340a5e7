"""Audio formats, shared by microphones and loudspeakers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """Format of audio data: codec (`pcm16`, `pcm32`, `pcm32_float`, `mp3`), sample rate (Hz) and number of channels."""

    codec: str = ""
    sample_rate_hz: int = 0
    num_channels: int = 0


@dataclass(frozen=True, slots=True)
class AudioProperties:
    """Audio formats that a device supports."""

    supported_codecs: Sequence[str]
    sample_rate_hz: int
    num_channels: int

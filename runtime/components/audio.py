"""Audio formats: what microphones and loudspeakers have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """How samples are coded: codec (`pcm16`, `pcm32`, `pcm32_float`, `mp3`), samples per second (Hz) and channels."""

    codec: str = ""
    sample_rate_hz: int = 0
    num_channels: int = 0


@dataclass(frozen=True, slots=True)
class AudioProperties:
    """What an audio device can do."""

    supported_codecs: Sequence[str]
    sample_rate_hz: int
    num_channels: int

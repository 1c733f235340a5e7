"""Attributes of the simulated audio in. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class FakeAudioInConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated microphone."""

    sample_rate_hz: Annotated[int, msgspec.Meta(ge=8000, le=192000)] = 16000  # samples per second
    tone_hz: Annotated[float, msgspec.Meta(gt=0)] = 440.0  # frequency of the tone that it records

"""Audio output: a loudspeaker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import ClassVar

from engine.components.media.audio import AudioInfo, AudioProperties
from engine.resource import Component, Extra
from schema import API


class AudioOut(Component):
    """A device that plays audio."""

    API: ClassVar[API] = API("rdk", "component", "audio_out")

    async def play(self, audio_data: bytes, audio_info: AudioInfo | None = None, *, extra: Extra = None) -> None:
        """Play a recording to its end; without `audio_info` its format is read from the data."""
        raise NotImplementedError

    async def play_stream(
        self, audio_chunks: AsyncIterator[bytes], audio_info: AudioInfo | None = None, *, extra: Extra = None
    ) -> None:
        """Play chunks as they arrive; returns when the last one has been played. Cancel to stop."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> AudioProperties:
        """Return the codecs, sample rate (Hz) and number of channels of this device."""
        raise NotImplementedError

"""Audio output: a loudspeaker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import ClassVar

from runtime.components.audio import AudioInfo, AudioProperties
from runtime.resource import Component, Extra
from schema.names import API


class AudioOut(Component):
    """Something that sounds."""

    API: ClassVar[API] = API("rdk", "component", "audio_out")

    async def play(self, audio_data: bytes, audio_info: AudioInfo | None = None, *, extra: Extra = None) -> None:
        """Play a whole recording; without `audio_info` its format is read from the data. Returns at its end."""
        raise NotImplementedError

    async def play_stream(
        self, audio_chunks: AsyncIterator[bytes], audio_info: AudioInfo | None = None, *, extra: Extra = None
    ) -> None:
        """Play chunks while they arrive; returns when the last has sounded. Cancelling stops the sound."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> AudioProperties:
        """Codecs, sample rate (Hz) and channels of this device."""
        raise NotImplementedError

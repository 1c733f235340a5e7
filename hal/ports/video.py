"""Video: a camera that delivers frames continuously, of which the newest is used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from schema import PixelFormat as PixelFormat
from schema import VideoSettings as VideoSettings


@dataclass(frozen=True, slots=True)
class VideoMode:
    """The mode of a camera. `rate` is in frames per second, 0 if unknown."""

    format: PixelFormat
    width: int
    height: int
    rate: float

    def __str__(self) -> str:
        return f"{self.format} {self.width}x{self.height}{f' at {self.rate:g}/s' if self.rate else ''}"


@dataclass(frozen=True, slots=True)
class Still:
    """A frame as a JPEG image, and when the camera captured it."""

    jpeg: bytes
    captured_at: datetime


class Video(Protocol):
    """An open camera, which delivers frames whether they are used or not."""

    @property
    def name(self) -> str:
        """The camera's own name."""

    @property
    def mode(self) -> VideoMode:
        """The current mode."""

    @property
    def frames(self) -> int:
        """The number of frames that have arrived."""

    async def arrived(self) -> None:
        """Wait for a new frame.

        HalError (gone) if the camera vanishes. Must be called repeatedly, since frames are only received here.
        """

    async def still(self) -> Still:
        """Return the newest frame. HalError: timeout if none has arrived yet, bus if it is not a valid image."""

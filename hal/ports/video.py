"""Video: a camera that delivers frames all the time, of which the newest counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

PixelFormat = Literal["mjpeg", "yuyv", "nv12", "rgb24", "bgr24", "grey"]


@dataclass(frozen=True, slots=True)
class VideoSettings:
    """What is wanted; an empty format and zeros leave it to the device."""

    format: PixelFormat | Literal[""] = ""
    width: int = 0  # pixels
    height: int = 0  # pixels
    rate: float = 0.0  # frames per second


@dataclass(frozen=True, slots=True)
class VideoMode:
    """What a camera delivers. `rate` in frames per second, 0 if the device does not say."""

    format: PixelFormat
    width: int
    height: int
    rate: float

    def __str__(self) -> str:
        return f"{self.format} {self.width}x{self.height}{f' at {self.rate:g}/s' if self.rate else ''}"


@dataclass(frozen=True, slots=True)
class Still:
    """One frame as a JPEG image, and when the camera took it."""

    jpeg: bytes
    captured_at: datetime


class Video(Protocol):
    """An open camera. Frames arrive whether or not anybody asks for one."""

    @property
    def name(self) -> str:
        """What the camera calls itself."""

    @property
    def mode(self) -> VideoMode:
        """What was agreed on."""

    @property
    def frames(self) -> int:
        """How many frames have arrived."""

    async def arrived(self) -> None:
        """Wait for a frame that has not been waited for.

        HalError (gone) when the camera vanishes. Somebody has to wait here again and again for frames to be taken.
        """

    async def still(self) -> Still:
        """The newest frame. HalError (timeout) if none has arrived yet, (bus) if it is not a picture."""

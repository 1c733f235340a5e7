"""Attributes of `webcam`. Pure."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from models.image_file.attributes import Distortion, Intrinsics
from schema import Attributes, VideoSettings

FORMATS: Final = {"mjpg": "mjpeg", "jpeg": "mjpeg", "yuy2": "yuyv", "rgb3": "rgb24", "bgr3": "bgr24"}  # aliases

Pixels = Annotated[int, msgspec.Meta(ge=0, le=16384)]


class WebcamConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the webcam. The camera chooses what is not configured; an unsupported value is an error."""

    video_path: str = ""  # path (stable under /dev/v4l/by-id) or name; empty: the first camera
    format: str = ""  # mjpeg, yuyv, nv12, rgb24, bgr24 or grey; mjpeg uses least bandwidth
    width_px: Pixels = 0  # width of the image; default: 640 or the nearest
    height_px: Pixels = 0  # height of the image; default: 480 or the nearest
    frame_rate: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.0  # frames per second
    intrinsic_parameters: Intrinsics | None = None  # reported by get_properties
    distortion_parameters: Distortion | None = None  # reported by get_properties

    def __post_init__(self) -> None:
        self.settings()

    def settings(self) -> VideoSettings:
        """Return the settings to request from the camera. ValueError for an unknown format."""
        name = self.format.lower()
        name = FORMATS.get(name, name)
        try:
            return msgspec.convert(
                {"format": name, "width": self.width_px, "height": self.height_px, "rate": self.frame_rate},
                VideoSettings,
            )
        except msgspec.ValidationError:
            raise ValueError(f"format {self.format!r} is not mjpeg, yuyv, nv12, rgb24, bgr24 or grey") from None

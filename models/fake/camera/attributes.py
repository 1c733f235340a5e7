"""Attributes of the simulated camera. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

import msgspec

from schema import Attributes

LARGEST: Final = 4096  # pixels
Pixels = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
DEFAULT: Final = (1280, 720)


class FakeCameraConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated camera."""

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {"width": "width_px", "height": "height_px"}

    width_px: Pixels = 0  # width of the image; 0: in proportion to the height, or 1280
    height_px: Pixels = 0  # height of the image; 0: in proportion to the width, or 720
    animated: bool = True  # show the current state of the simulation; if false, always the state of the first image
    model: bool = True  # report the intrinsic parameters
    rtp_passthrough: bool = False  # accepted but ignored
    format: Annotated[str, msgspec.Meta(pattern="^(jpeg|png)$")] = "jpeg"  # jpeg or png

    def __post_init__(self) -> None:
        if max(self.size) > LARGEST:
            size = f"{self.size[0]} x {self.size[1]}"
            raise ValueError(f"an image of {size} pixels is too large: give width_px and height_px")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        width, height = self.width_px, self.height_px
        if not width and not height:
            return DEFAULT
        return width or round(height * DEFAULT[0] / DEFAULT[1]), height or round(width * DEFAULT[1] / DEFAULT[0])

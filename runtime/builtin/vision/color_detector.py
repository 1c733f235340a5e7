"""Vision service `color_detector`: things of one color, without any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import msgspec
import trio

from runtime.builtin.vision.colors import HueRange, found_in, hue_of
from runtime.builtin.vision.found import Box, detection
from runtime.builtin.vision.pictures import decode
from runtime.builtin.vision.service import Abilities, Seeing, SeeingConfig
from runtime.resource import Attributes
from runtime.services.vision import Detection

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


class ColorDetectorConfig(SeeingConfig, kw_only=True, frozen=True):
    """Attributes of the color detector. Only the hue of the color counts; greys, black and white have none."""

    detect_color: str  # the color to look for, #RRGGBB
    hue_tolerance_pct: Share  # how far a hue may be away, as a share of half the circle; 0.05 is a good start, 1 is any
    segment_size_px: Annotated[int, msgspec.Meta(ge=1)]  # smallest region of touching pixels that counts, pixels
    saturation_cutoff_pct: Share = 0.2  # least saturation of a pixel that counts, 0 to 1
    value_cutoff_pct: Share = 0.3  # least brightness of a pixel that counts, 0 to 1
    label: str = ""  # class name of what is found; the color itself if empty

    def __post_init__(self) -> None:
        self.hues()

    def hues(self) -> HueRange:
        """What to look for; ValueError for a color without a hue."""
        return HueRange(
            hue_of(self.detect_color), self.hue_tolerance_pct / 2, self.saturation_cutoff_pct, self.value_cutoff_pct
        )


class ColorDetector(Seeing):
    """Each region is a detection of confidence 1, largest first."""

    Config: ClassVar[type[Attributes]] = ColorDetectorConfig
    attributes: ColorDetectorConfig

    async def prepare(self) -> None:
        """It only detects."""
        self.abilities = Abilities(detects=True)

    async def detect(self, image: bytes, mime_type: str) -> Sequence[Detection]:
        """Boxes around the regions."""
        return await self.work(partial(_detect, self.attributes, image, mime_type))

    async def get_status(self) -> Mapping[str, Any]:
        """The color, and the hue that it means in degrees."""
        await trio.lowlevel.checkpoint()
        return {"color": self.attributes.detect_color, "hue": round(self.attributes.hues().middle * 360, 1)}


def _detect(config: ColorDetectorConfig, image: bytes, mime_type: str) -> list[Detection]:
    picture = decode(image, mime_type)
    width, height = picture.size
    found = []
    for one in found_in(picture, config.hues(), config.segment_size_px):
        box = Box(one.x_min / width, one.y_min / height, one.x_max / width, one.y_max / height, 1.0, 0)
        if (known := detection(box, config.label or config.detect_color, width, height)) is not None:
            found.append(known)
    return found

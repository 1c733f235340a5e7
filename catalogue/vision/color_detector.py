"""Attributes that `runtime.builtin.vision.color_detector` reads."""

from __future__ import annotations

from typing import Annotated

import msgspec

from catalogue.vision.colors import HueRange, hue_of
from catalogue.vision.service import SeeingConfig

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

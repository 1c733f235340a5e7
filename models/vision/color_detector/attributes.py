"""Attributes of `color_detector`. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from models.vision.color_detector.hues import HueRange, hue_of
from models.vision.common.attributes import SeeingConfig

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


class ColorDetectorConfig(SeeingConfig, kw_only=True, frozen=True):
    """Attributes of the color detector. It compares hues; grays, black and white have no hue."""

    detect_color: str  # the color to look for, #RRGGBB
    hue_tolerance_pct: Share  # largest difference of hue, as a share of half the circle; start with 0.05; 1: any hue
    segment_size_px: Annotated[int, msgspec.Meta(ge=1)]  # smallest region of adjacent pixels to report, in pixels
    saturation_cutoff_pct: Share = 0.2  # lowest saturation of a matching pixel, 0 to 1
    value_cutoff_pct: Share = 0.3  # lowest brightness of a matching pixel, 0 to 1
    label: str = ""  # class name of the detections; empty: the color

    def __post_init__(self) -> None:
        self.hues()

    def hues(self) -> HueRange:
        """Return the range of hues to detect. ValueError for a color without a hue."""
        return HueRange(
            hue_of(self.detect_color), self.hue_tolerance_pct / 2, self.saturation_cutoff_pct, self.value_cutoff_pct
        )

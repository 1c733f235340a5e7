"""Attributes of `color_detector`. Pure."""

from __future__ import annotations

import colorsys
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


_HEX: Final = re.compile(r"#[0-9A-Fa-f]{6}")


@dataclass(frozen=True, slots=True)
class HueRange:
    """A range of hues (0 to 1) around `middle`, with the lowest saturation and brightness of a pixel (0 to 1)."""

    middle: float
    reach: float  # largest distance from the middle in either direction, 0 to 0.5
    saturation: float
    value: float

    def mask(self, picture: Picture) -> Picture:
        """Return an image that is white where a pixel of the RGB picture is in the range, and black elsewhere."""
        from PIL import ImageChops

        hue, saturation, value = picture.convert("HSV").split()
        in_range = hue.point([255 * (self._distance(index / 255) <= self.reach + 0.5 / 255) for index in range(256)])
        vivid = saturation.point(_threshold_table(self.saturation))
        bright = value.point(_threshold_table(self.value))
        return ImageChops.darker(ImageChops.darker(in_range, vivid), bright)

    def _distance(self, hue: float) -> float:
        difference = abs(hue - self.middle) % 1.0
        return min(difference, 1.0 - difference)


def _threshold_table(lowest: float) -> list[int]:
    """Return a lookup table of 256 values: white from `lowest` times 255 upwards, black below."""
    return [255 * (index >= lowest * 255) for index in range(256)]


def hue_of(color: str) -> float:
    """Return the hue of `#RRGGBB`, 0 to 1. ValueError for other text, and for grays, which have no hue."""
    if not _HEX.fullmatch(color):
        raise ValueError(f"{color!r} is not a color; write #RRGGBB")
    red, green, blue = (int(color[index : index + 2], 16) / 255 for index in (1, 3, 5))
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if not saturation or not value:
        raise ValueError(f"{color} is a shade of grey and has no hue; choose a color")
    return hue

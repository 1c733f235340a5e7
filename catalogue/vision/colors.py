"""Attributes that `runtime.builtin.vision.colors` reads."""

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
    """Hues around a middle (both 0 to 1 of the circle), in pixels that are saturated and bright enough (0 to 1)."""

    middle: float
    reach: float  # to both sides, 0 to 0.5
    saturation: float
    value: float

    def mask(self, picture: Picture) -> Picture:
        """White where a pixel of the RGB picture is within, black elsewhere."""
        from PIL import ImageChops

        hue, saturation, value = picture.convert("HSV").split()
        wanted = hue.point([255 * (self._distance(index / 255) <= self.reach + 0.5 / 255) for index in range(256)])
        vivid = saturation.point(_from(self.saturation))
        bright = value.point(_from(self.value))
        return ImageChops.darker(ImageChops.darker(wanted, vivid), bright)

    def _distance(self, hue: float) -> float:
        away = abs(hue - self.middle) % 1.0
        return min(away, 1.0 - away)


def _from(least: float) -> list[int]:
    """A table of 256 values: white from the share `least` of 255 on."""
    return [255 * (index >= least * 255) for index in range(256)]


def hue_of(color: str) -> float:
    """The hue of `#RRGGBB` as a share of the circle; ValueError for anything else and for greys, which have none."""
    if not _HEX.fullmatch(color):
        raise ValueError(f"{color!r} is not a color; write #RRGGBB")
    red, green, blue = (int(color[index : index + 2], 16) / 255 for index in (1, 3, 5))
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if not saturation or not value:
        raise ValueError(f"{color} is a shade of grey and has no hue; choose a color")
    return hue

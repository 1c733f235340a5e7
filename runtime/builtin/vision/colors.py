"""Regions of one hue in a picture. Pure but for Pillow, which the picture brings along."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_HEX: Final = re.compile(r"#[0-9A-Fa-f]{6}")
_SET, _CLEAR = b"\xff", b"\x00"


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


@dataclass(slots=True)
class Region:
    """Pixels that touch each other along an edge, and the box around them; maxima are exclusive."""

    pixels: int
    x_min: int
    y_min: int
    x_max: int
    y_max: int

    def take(self, other: Region) -> None:
        """Make the other one a part of this one."""
        self.pixels += other.pixels
        self.x_min, self.y_min = min(self.x_min, other.x_min), min(self.y_min, other.y_min)
        self.x_max, self.y_max = max(self.x_max, other.x_max), max(self.y_max, other.y_max)


def regions(mask: Picture, least: int) -> list[Region]:
    """The white regions of at least `least` pixels, largest first."""
    width, height = mask.size
    data = mask.tobytes()
    found: list[Region] = []
    parents: list[int] = []  # of a union-find forest over `found`
    above: list[tuple[int, int, int]] = []  # runs of the row before: begin, end, region
    for y in range(height):
        current = []
        first = 0
        for begin, end in _runs(data[y * width : (y + 1) * width]):
            mine = -1
            while first < len(above) and above[first][1] <= begin:
                first += 1
            at = first
            while at < len(above) and above[at][0] < end:
                other = _root(parents, above[at][2])
                if mine < 0:
                    mine = other
                elif mine != other:
                    found[mine].take(found[other])
                    parents[other] = mine
                at += 1
            run = Region(end - begin, begin, y, end, y + 1)
            if mine < 0:
                mine = len(found)
                found.append(run)
                parents.append(mine)
            else:
                found[mine].take(run)
            current.append((begin, end, mine))
        above = current
    kept = (region for index, region in enumerate(found) if parents[index] == index and region.pixels >= least)
    return sorted(kept, key=lambda region: (-region.pixels, region.y_min, region.x_min))


def _runs(row: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of white in a row of a mask."""
    begin = row.find(_SET)
    while begin >= 0:
        end = row.find(_CLEAR, begin)
        if end < 0:
            end = len(row)
        yield begin, end
        begin = row.find(_SET, end)


def _root(parents: list[int], index: int) -> int:
    while parents[index] != index:
        parents[index] = parents[parents[index]]
        index = parents[index]
    return index


def found_in(picture: Picture, wanted: HueRange, least: int) -> Sequence[Region]:
    """Regions of the wanted hue, largest first."""
    return regions(wanted.mask(picture), least)

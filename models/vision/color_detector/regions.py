"""Regions of one hue in a picture. Pure, except for Pillow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
from models.vision.color_detector.hues import HueRange

_SET, _CLEAR = b"\xff", b"\x00"


@dataclass(slots=True)
class Region:
    """A group of pixels connected along their edges, and the box around them; maxima are exclusive."""

    pixels: int
    x_min: int
    y_min: int
    x_max: int
    y_max: int

    def take(self, other: Region) -> None:
        """Merge another region into this one."""
        self.pixels += other.pixels
        self.x_min, self.y_min = min(self.x_min, other.x_min), min(self.y_min, other.y_min)
        self.x_max, self.y_max = max(self.x_max, other.x_max), max(self.y_max, other.y_max)


def regions(mask: Picture, min_pixels: int) -> list[Region]:
    """Return the white regions of at least `min_pixels` pixels, largest first."""
    width, height = mask.size
    data = mask.tobytes()
    labelled: list[Region] = []
    parents: list[int] = []  # union-find forest over `labelled`
    above: list[tuple[int, int, int]] = []  # runs of the previous row: begin, end, region
    for y in range(height):
        current = []
        next_above = 0
        for begin, end in _runs(data[y * width : (y + 1) * width]):
            own = -1
            while next_above < len(above) and above[next_above][1] <= begin:
                next_above += 1
            index = next_above
            while index < len(above) and above[index][0] < end:
                other = _root(parents, above[index][2])
                if own < 0:
                    own = other
                elif own != other:
                    labelled[own].take(labelled[other])
                    parents[other] = own
                index += 1
            run = Region(end - begin, begin, y, end, y + 1)
            if own < 0:
                own = len(labelled)
                labelled.append(run)
                parents.append(own)
            else:
                labelled[own].take(run)
            current.append((begin, end, own))
        above = current
    kept = (region for index, region in enumerate(labelled) if parents[index] == index and region.pixels >= min_pixels)
    return sorted(kept, key=lambda region: (-region.pixels, region.y_min, region.x_min))


def _runs(row: bytes) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each white run in a row of a mask."""
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


def regions_of_hues(picture: Picture, hues: HueRange, min_pixels: int) -> Sequence[Region]:
    """Return the regions of at least `min_pixels` pixels in a range of hues, largest first."""
    return regions(hues.mask(picture), min_pixels)

"""Which of the modes that a camera offers is taken. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hal.errors import Fault, HalError
from hal.ports.video import PixelFormat, VideoSettings

PREFERENCE: Final[tuple[PixelFormat, ...]] = ("mjpeg", "yuyv", "nv12", "rgb24", "bgr24", "grey")
"""The first needs no conversion and the least of the bus."""

USUAL: Final = (640, 480)  # pixels, wanted where nothing is said
TOLERANCE: Final = 0.01  # of a frame rate: 29.97 is 30
SHOWN: Final = 6  # alternatives named in an error


@dataclass(frozen=True, slots=True)
class Sizes:
    """Widths and heights from the least to the greatest in steps; a single size has least and greatest alike."""

    width: int
    height: int
    greatest_width: int = 0
    greatest_height: int = 0
    step_width: int = 1
    step_height: int = 1

    def nearest(self, width: int, height: int) -> tuple[int, int]:
        """The size of these that is nearest in each direction."""
        return (
            _nearest(width, self.width, self.greatest_width, self.step_width),
            _nearest(height, self.height, self.greatest_height, self.step_height),
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """Frames per second from the least to the greatest; a single rate has both alike."""

    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.least:g}" if self.least == self.greatest else f"{self.least:g} to {self.greatest:g}"


def choose_size(
    offers: Mapping[PixelFormat, Sequence[Sizes]], wanted: VideoSettings, camera: str
) -> tuple[PixelFormat, int, int]:
    """Format, width and height, exactly as wanted; what is not said is as usual, or the nearest to it.

    HalError (unsupported) names what there is.
    """
    known = [pixels for pixels in PREFERENCE if pixels in offers and wanted.format in ("", pixels)]
    if not known:
        raise _refusal(camera, f"has no format {wanted.format or 'that can be shown'}", sorted(offers))
    aim = (wanted.width or USUAL[0], wanted.height or USUAL[1])
    near: set[tuple[int, int]] = set()
    for pixels in known:
        sizes = [offer.nearest(*aim) for offer in offers[pixels]]
        exact = [size for size in sizes if wanted.width in (0, size[0]) and wanted.height in (0, size[1])]
        if exact:
            return (pixels, *min(exact, key=_distance(aim)))
        near.update(sizes)
    words = [f"{width}x{height}" for width, height in sorted(near, key=_distance(aim))]
    size = f"{wanted.width or 'any'}x{wanted.height or 'any'}"
    raise _refusal(camera, f"has no size {size}{f' in {wanted.format}' if wanted.format else ''}", words)


def choose_rate(offers: Sequence[Rates], wanted: float, mode: str, camera: str) -> float:
    """The rate that is wanted, within a hundredth; HalError (unsupported) names what there is."""
    for rates in offers:
        if rates.least * (1 - TOLERANCE) <= wanted <= rates.greatest * (1 + TOLERANCE):
            return min(max(wanted, rates.least), rates.greatest)
    near = sorted(offers, key=lambda rates: min(abs(rates.least - wanted), abs(rates.greatest - wanted)))
    raise _refusal(camera, f"has no {wanted:g} frames/s in {mode}", [str(rates) for rates in near])


def _nearest(value: int, least: int, greatest: int, step: int) -> int:
    if value <= least:
        return least
    value = min(value, max(least, greatest))
    return least + round((value - least) / max(1, step)) * max(1, step) if greatest > least else least


def _distance(aim: tuple[int, int]) -> Callable[[tuple[int, int]], tuple[int, tuple[int, int]]]:
    return lambda size: (abs(size[0] - aim[0]) + abs(size[1] - aim[1]), size)


def _refusal(camera: str, what: str, there: Sequence[str]) -> HalError:
    remedy = f"use {' or '.join(there[:SHOWN])}" if there else "leave it to the camera"
    return HalError(f"{camera} {what}", Fault.UNSUPPORTED, remedy=remedy)

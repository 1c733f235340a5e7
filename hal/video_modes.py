"""Selection of a mode that a camera offers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hal.errors import Fault, HalError
from hal.ports.video import PixelFormat, VideoSettings

PREFERENCE: Final[tuple[PixelFormat, ...]] = ("mjpeg", "yuyv", "nv12", "rgb24", "bgr24", "grey")
"""Pixel formats in the order of preference: the first needs no conversion and the least bandwidth."""

USUAL: Final = (640, 480)  # pixels; the default size
TOLERANCE: Final = 0.01  # relative tolerance of a frame rate, so that 29.97 matches 30
SHOWN: Final = 6  # maximum alternatives in an error


@dataclass(frozen=True, slots=True)
class Sizes:
    """Widths and heights from minimum to maximum in steps; for a single size the maximum is 0 or equal."""

    width: int
    height: int
    greatest_width: int = 0
    greatest_height: int = 0
    step_width: int = 1
    step_height: int = 1

    def nearest(self, width: int, height: int) -> tuple[int, int]:
        """Return the nearest of these sizes, for each dimension separately."""
        return (
            _nearest(width, self.width, self.greatest_width, self.step_width),
            _nearest(height, self.height, self.greatest_height, self.step_height),
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """Frames per second from `least` to `greatest`, which are equal for a single rate."""

    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.least:g}" if self.least == self.greatest else f"{self.least:g} to {self.greatest:g}"


def choose_size(
    offers: Mapping[PixelFormat, Sequence[Sizes]], requested: VideoSettings, camera: str
) -> tuple[PixelFormat, int, int]:
    """Return format, width and height as requested; unspecified values are the default or the nearest to it.

    HalError (unsupported) lists the alternatives.
    """
    formats = [pixels for pixels in PREFERENCE if pixels in offers and requested.format in ("", pixels)]
    if not formats:
        raise _refusal(camera, f"has no format {requested.format or 'that is supported'}", sorted(offers))
    target = (requested.width or USUAL[0], requested.height or USUAL[1])
    near: set[tuple[int, int]] = set()
    for pixels in formats:
        sizes = [offer.nearest(*target) for offer in offers[pixels]]
        exact = [size for size in sizes if requested.width in (0, size[0]) and requested.height in (0, size[1])]
        if exact:
            return (pixels, *min(exact, key=_distance(target)))
        near.update(sizes)
    alternatives = [f"{width}x{height}" for width, height in sorted(near, key=_distance(target))]
    size = f"{requested.width or 'any'}x{requested.height or 'any'}"
    raise _refusal(camera, f"has no size {size}{f' in {requested.format}' if requested.format else ''}", alternatives)


def choose_rate(offers: Sequence[Rates], requested: float, mode: str, camera: str) -> float:
    """Return the requested rate, within 1 %; HalError (unsupported) lists the alternatives."""
    for rates in offers:
        if rates.least * (1 - TOLERANCE) <= requested <= rates.greatest * (1 + TOLERANCE):
            return min(max(requested, rates.least), rates.greatest)
    near = sorted(offers, key=lambda rates: min(abs(rates.least - requested), abs(rates.greatest - requested)))
    raise _refusal(camera, f"has no {requested:g} frames/s in {mode}", [str(rates) for rates in near])


def _nearest(value: int, least: int, greatest: int, step: int) -> int:
    if value <= least:
        return least
    value = min(value, max(least, greatest))
    return least + round((value - least) / max(1, step)) * max(1, step) if greatest > least else least


def _distance(target: tuple[int, int]) -> Callable[[tuple[int, int]], tuple[int, tuple[int, int]]]:
    return lambda size: (abs(size[0] - target[0]) + abs(size[1] - target[1]), size)


def _refusal(camera: str, problem: str, alternatives: Sequence[str]) -> HalError:
    remedy = f"use {' or '.join(alternatives[:SHOWN])}" if alternatives else "omit it, so that the camera decides"
    return HalError(f"{camera} {problem}", Fault.UNSUPPORTED, remedy=remedy)

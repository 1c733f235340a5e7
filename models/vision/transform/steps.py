"""Attributes of `transform`. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


Size: TypeAlias = tuple[int, int]

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

Pixels = Annotated[int, msgspec.Meta(ge=1, le=16384)]

Edge = Annotated[float, msgspec.Meta(ge=0, le=16384)]


@dataclass(frozen=True, slots=True)
class Moved:
    """A coordinate transform: x' = a x + b y + c, y' = d x + e y + f. `size` is that of the resulting picture."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float
    size: Size

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the transformed coordinates of a point."""
        return self.a * x + self.b * y + self.c, self.d * x + self.e * y + self.f


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a pipeline. The base class leaves a picture unchanged."""

    def moved(self, size: Size) -> Moved:
        """Return the coordinate transform for a picture of that size. ValueError if the step does not apply to it."""
        return Moved(1, 0, 0, 0, 1, 0, size)

    def apply(self, picture: Picture) -> Picture:
        """Return the picture after the step."""
        return picture


class Identity(Step, frozen=True):
    """Leaves the picture unchanged."""


class Resize(Step, frozen=True):
    """Scales the picture to a size, ignoring its proportions."""

    width_px: Pixels  # new width
    height_px: Pixels  # new height

    def moved(self, size: Size) -> Moved:
        """Scale the coordinates along both axes."""
        return Moved(self.width_px / size[0], 0, 0, 0, self.height_px / size[1], 0, (self.width_px, self.height_px))

    def apply(self, picture: Picture) -> Picture:
        """Scale with bilinear interpolation."""
        return picture.resize((self.width_px, self.height_px), 2)  # Resampling.BILINEAR


class Crop(Step, frozen=True):
    """Keeps the part between two corners. Values are pixels, or shares of the picture if no maximum is above 1."""

    x_min_px: Edge  # left edge
    y_min_px: Edge  # upper edge
    x_max_px: Edge  # right edge, exclusive
    y_max_px: Edge  # lower edge, exclusive

    def __post_init__(self) -> None:
        if self.x_min_px >= self.x_max_px or self.y_min_px >= self.y_max_px:
            raise ValueError("the minima of a crop are not below its maxima")

    def _corners(self, size: Size) -> tuple[int, int, int, int]:
        across, down = size if max(self.x_max_px, self.y_max_px) <= 1 else (1, 1)
        left, top = round(self.x_min_px * across), round(self.y_min_px * down)
        right, bottom = min(size[0], round(self.x_max_px * across)), min(size[1], round(self.y_max_px * down))
        if left >= right or top >= bottom:
            raise ValueError(f"the crop contains no pixel of a picture of {size[0]} x {size[1]} pixels")
        return left, top, right, bottom

    def moved(self, size: Size) -> Moved:
        """Shift the coordinates. ValueError if the crop lies outside the picture."""
        left, top, right, bottom = self._corners(size)
        return Moved(1, 0, -left, 0, 1, -top, (right - left, bottom - top))

    def apply(self, picture: Picture) -> Picture:
        """Cut out the part."""
        return picture.crop(self._corners(picture.size))


class Rotate(Step, frozen=True):
    """Rotates counterclockwise. The picture grows to keep its whole content; new corners are black."""

    angle_degs: Annotated[float, msgspec.Meta(ge=-3600, le=3600)] = 180.0  # degrees

    def moved(self, size: Size) -> Moved:
        """Rotate the coordinates about the center."""
        angle = math.radians(self.angle_degs)
        cosine, sine = round(math.cos(angle), 12), round(math.sin(angle), 12)
        width, height = size
        grown = (
            math.ceil(abs(width * cosine) + abs(height * sine) - 1e-6),
            math.ceil(abs(width * sine) + abs(height * cosine) - 1e-6),
        )
        x, y = width / 2, height / 2
        return Moved(
            cosine,
            sine,
            grown[0] / 2 - cosine * x - sine * y,
            -sine,
            cosine,
            grown[1] / 2 + sine * x - cosine * y,
            grown,
        )

    def apply(self, picture: Picture) -> Picture:
        """Rotate with bilinear interpolation; quarter turns are exact."""
        from PIL import Image

        quarters = {
            90.0: Image.Transpose.ROTATE_90,
            180.0: Image.Transpose.ROTATE_180,
            270.0: Image.Transpose.ROTATE_270,
        }
        angle = self.angle_degs % 360
        if angle in quarters:
            return picture.transpose(quarters[angle])
        to = self.moved(picture.size)
        back = (
            to.a,
            to.d,
            -(to.a * to.c + to.d * to.f),
            to.b,
            to.e,
            -(to.b * to.c + to.e * to.f),
        )  # a rotation's inverse
        return picture.transform(to.size, Image.Transform.AFFINE, back, Image.Resampling.BILINEAR)


class Detections(Step, frozen=True):
    """Draws boxes around the detections of a vision service."""

    detector_name: str  # the vision service
    confidence_threshold: Share = 0.0  # lowest confidence of a detection
    valid_labels: tuple[str, ...] = ()  # allowed labels; empty: all


class Classifications(Step, frozen=True):
    """Draws the classifications of a vision service."""

    classifier_name: str  # the vision service
    confidence_threshold: Share = 0.0  # lowest confidence of a classification
    max_classifications: Annotated[int, msgspec.Meta(ge=1)] = 1  # largest number of labels
    valid_labels: tuple[str, ...] = ()  # allowed labels; empty: all


STEPS: Final[Mapping[str, type[Step]]] = {
    "identity": Identity,
    "resize": Resize,
    "crop": Crop,
    "rotate": Rotate,
    "detections": Detections,
    "classifications": Classifications,
}
"""Classes of steps by the `type` of an entry."""


def step(kind: str, attributes: Mapping[str, Any]) -> Step:
    """Parse one entry of a pipeline. ValueError if it is invalid."""
    cls = STEPS.get(kind)
    if cls is None:
        raise ValueError(f"{kind!r} is not a step; use one of {', '.join(STEPS)}")
    try:
        return msgspec.convert(dict(attributes), cls)
    except msgspec.ValidationError as error:
        raise ValueError(f"{kind}: {error}") from None

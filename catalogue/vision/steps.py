"""Attributes that `runtime.builtin.vision.steps` reads."""

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
    """Where places go: x' = a x + b y + c, y' = d x + e y + f, in a picture that then has the size `size`."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float
    size: Size

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a place goes."""
        return self.a * x + self.b * y + self.c, self.d * x + self.e * y + self.f


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step. It leaves a picture as it is unless a derived class says otherwise."""

    def moved(self, size: Size) -> Moved:
        """What becomes of places in a picture of that size; ValueError if the step cannot be made with it."""
        return Moved(1, 0, 0, 0, 1, 0, size)

    def apply(self, picture: Picture) -> Picture:
        """The picture after the step."""
        return picture


class Identity(Step, frozen=True):
    """Nothing."""


class Resize(Step, frozen=True):
    """To a size."""

    width_px: Pixels  # width afterwards
    height_px: Pixels  # height afterwards

    def moved(self, size: Size) -> Moved:
        """Stretched."""
        return Moved(self.width_px / size[0], 0, 0, 0, self.height_px / size[1], 0, (self.width_px, self.height_px))

    def apply(self, picture: Picture) -> Picture:
        """Smoothly."""
        return picture.resize((self.width_px, self.height_px), 2)  # Resampling.BILINEAR


class Crop(Step, frozen=True):
    """The part between two corners, in pixels; or in fractions of the picture, if none of them is above 1."""

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
            raise ValueError(f"nothing of a picture of {size[0]} x {size[1]} pixels is within the crop")
        return left, top, right, bottom

    def moved(self, size: Size) -> Moved:
        """Shifted; what is outside is cut off."""
        left, top, right, bottom = self._corners(size)
        return Moved(1, 0, -left, 0, 1, -top, (right - left, bottom - top))

    def apply(self, picture: Picture) -> Picture:
        """The part."""
        return picture.crop(self._corners(picture.size))


class Rotate(Step, frozen=True):
    """Counter-clockwise; the picture grows so that nothing is lost, new corners are black."""

    angle_degs: Annotated[float, msgspec.Meta(ge=-3600, le=3600)] = 180.0  # degrees

    def moved(self, size: Size) -> Moved:
        """About the middle."""
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
        """Quarter turns are exact."""
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
    """Boxes around what a vision service finds."""

    detector_name: str  # the vision service
    confidence_threshold: Share = 0.0  # from this confidence on
    valid_labels: tuple[str, ...] = ()  # only these labels; all if empty


class Classifications(Step, frozen=True):
    """The labels that a vision service gives."""

    classifier_name: str  # the vision service
    confidence_threshold: Share = 0.0  # from this confidence on
    max_classifications: Annotated[int, msgspec.Meta(ge=1)] = 1  # never more than these
    valid_labels: tuple[str, ...] = ()  # only these labels; all if empty


STEPS: Final[Mapping[str, type[Step]]] = {
    "identity": Identity,
    "resize": Resize,
    "crop": Crop,
    "rotate": Rotate,
    "detections": Detections,
    "classifications": Classifications,
}
"""Steps by the `type` of their entry."""


def step(kind: str, attributes: Mapping[str, Any]) -> Step:
    """Reads one entry of a pipeline; ValueError says what is wrong with it."""
    cls = STEPS.get(kind)
    if cls is None:
        raise ValueError(f"there is no step {kind!r}; use {', '.join(STEPS)}")
    try:
        return msgspec.convert(dict(attributes), cls)
    except msgspec.ValidationError as error:
        raise ValueError(f"{kind}: {error}") from None

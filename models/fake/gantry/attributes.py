"""Attributes of the simulated gantry. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec

from schema import Attributes

Length = Annotated[float, msgspec.Meta(gt=0)]


class FakeGantryConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated gantry."""

    NOT_BUILT: ClassVar[Mapping[str, str]] = {"model_path": "kinematics of a simulated gantry from a file"}

    lengths_mm: tuple[Length, ...] = ()  # length of each axis; default: three axes of 1000 mm
    length_mm: Length | None = None  # length of a gantry with one axis, instead of lengths_mm
    axes: Annotated[int, msgspec.Meta(ge=1, le=3)] | None = None  # use only this many of the axes

    @property
    def lengths(self) -> list[float]:
        """The length of each axis in millimeters, with defaults applied."""
        own = (self.length_mm,) if self.length_mm is not None else None
        return list((own or self.lengths_mm or (1000.0, 1000.0, 1000.0))[: self.axes])

    def __post_init__(self) -> None:
        if self.length_mm is not None and self.lengths_mm:
            raise ValueError("length_mm and lengths_mm are both given: keep one")
        if len(self.lengths_mm) > 3:
            raise ValueError("lengths_mm must have 1 to 3 entries")
        if self.axes is not None and self.axes > len(self.lengths):
            raise ValueError(f"axes is {self.axes} but there are {len(self.lengths)} lengths")

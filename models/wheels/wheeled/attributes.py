"""Attributes of `wheeled`. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class WheeledConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a wheeled base."""

    left: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # names of the motors on the left
    right: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # names of the motors on the right
    width_mm: Annotated[float, msgspec.Meta(gt=0)]  # distance between the centers of the left and right wheels
    wheel_circumference_mm: Annotated[float, msgspec.Meta(gt=0)]  # distance per revolution
    spin_slip_factor: Annotated[float, msgspec.Meta(gt=0)] = 1.0  # factor of wheel travel when the base turns

    def __post_init__(self) -> None:
        names = [*self.left, *self.right]
        if len(set(names)) != len(names):
            raise ValueError("a motor is named twice in left and right")

    def requires(self) -> list[str]:
        """Require the motors."""
        return [*self.left, *self.right]

"""Attributes of the simulated base. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class FakeBaseConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated base. Without motors, it simulates its own wheels."""

    left: tuple[str, ...] = ()  # names of the motors on the left
    right: tuple[str, ...] = ()  # names of the motors on the right
    width_mm: Annotated[float, msgspec.Meta(gt=0)] = 600.0  # distance between the centers of the left and right wheels
    wheel_circumference_mm: Annotated[float, msgspec.Meta(gt=0)] = 600.0  # distance per revolution
    spin_slip_factor: Annotated[float, msgspec.Meta(gt=0)] = 1.0  # factor of wheel travel when turning on the spot

    def __post_init__(self) -> None:
        if bool(self.left) != bool(self.right):
            raise ValueError("left and right must be given together")

    def requires(self) -> list[str]:
        """Require the motors."""
        return [*self.left, *self.right]

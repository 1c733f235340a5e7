"""Attributes of the simulated servo. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class FakeServoConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated servo."""

    min_angle_deg: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # smallest angle
    max_angle_deg: Annotated[float, msgspec.Meta(gt=0)] = 180.0  # largest angle
    starting_position_deg: float | None = None  # angle at start; default: the smallest angle

    def __post_init__(self) -> None:
        start = self.min_angle_deg if self.starting_position_deg is None else self.starting_position_deg
        if not self.min_angle_deg <= start <= self.max_angle_deg:
            raise ValueError(
                f"starting_position_deg {start:g} is not within {self.min_angle_deg:g} to {self.max_angle_deg:g}"
            )

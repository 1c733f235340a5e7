"""Attributes that `runtime.builtin.gpio.odometry` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec

from schema.attributes import Attributes


class WheeledOdometryConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of an odometer."""

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {"time_interval_msecs": "time_interval_msec"}

    base: str  # name of the base; it tells width and circumference
    left_motors: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # motors with encoders on its left
    right_motors: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # motors with encoders on its right
    time_interval_msec: Annotated[float, msgspec.Meta(ge=5)] = 500.0  # between two looks at the motors (ms)
    origin_latitude: Annotated[float, msgspec.Meta(ge=-89, le=89)] = 0.0  # where it begins (degrees)
    origin_longitude: Annotated[float, msgspec.Meta(ge=-180, le=180)] = 0.0  # where it begins (degrees)
    origin_heading_deg: float = 0.0  # which way it faces there: degrees from north, clockwise

    def requires(self) -> list[str]:
        """Base and motors."""
        return [self.base, *self.left_motors, *self.right_motors]

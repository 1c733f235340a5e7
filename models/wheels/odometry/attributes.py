"""Attributes of `odometry`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec

from schema import Attributes


class WheeledOdometryConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of an odometer."""

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {"time_interval_msecs": "time_interval_msec"}

    base: str  # name of the base, which reports width and circumference
    left_motors: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # motors with encoders on the left
    right_motors: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # motors with encoders on the right
    time_interval_msec: Annotated[float, msgspec.Meta(ge=5)] = 500.0  # period of reading the motors (ms)
    origin_latitude: Annotated[float, msgspec.Meta(ge=-89, le=89)] = 0.0  # latitude at start (degrees)
    origin_longitude: Annotated[float, msgspec.Meta(ge=-180, le=180)] = 0.0  # longitude at start (degrees)
    origin_heading_deg: float = 0.0  # heading at start: degrees clockwise from north

    def requires(self) -> list[str]:
        """Require the base and the motors."""
        return [self.base, *self.left_motors, *self.right_motors]

"""Attributes of `remote_control`. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from schema import Attributes

ControlMode = Literal["arrowControl", "triggerSpeedControl", "buttonControl", "joystickControl", "droneControl"]


class RemoteControlConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a base that is driven with an input controller."""

    base: str  # name of the base that is driven
    input_controller: str  # name of the input controller that drives it
    control_mode: ControlMode = "arrowControl"  # the controls that are used
    max_linear_mm_per_sec: Annotated[float, msgspec.Meta(ge=0, le=100_000)] = 0.0  # 0: set power, not a velocity
    max_angular_degs_per_sec: Annotated[float, msgspec.Meta(ge=0, le=10_000)] = 0.0  # 0: set power, not a velocity

    def __post_init__(self) -> None:
        if bool(self.max_linear_mm_per_sec) != bool(self.max_angular_degs_per_sec):
            raise ValueError(
                "max_linear_mm_per_sec and max_angular_degs_per_sec must both be above 0, or both be left out"
            )

    def requires(self) -> list[str]:
        """Require the base and the input controller."""
        return [self.base, self.input_controller]

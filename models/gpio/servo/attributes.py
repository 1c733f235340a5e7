"""Attributes of a servo on pins. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from schema import Attributes


class GpioServoConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a servo on a pin with PWM."""

    board: str  # name of the board with the pin
    pin: str  # pin of that board, which must support PWM
    min_angle_deg: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # angle of the shortest pulse (degrees)
    max_angle_deg: Annotated[float, msgspec.Meta(gt=0)] = 180.0  # angle of the longest pulse (degrees)
    starting_position_deg: float | None = None  # angle at start; default: no movement until commanded
    frequency_hz: Annotated[int, msgspec.Meta(ge=50, le=450)] = 300  # pulses per second; analog servos require 50
    pwm_resolution: Annotated[int, msgspec.Meta(ge=0)] = 0  # steps of the board per period; 0: unknown
    min_width_us: Annotated[int, msgspec.Meta(gt=0)] = 500  # shortest pulse (µs)
    max_width_us: Annotated[int, msgspec.Meta(gt=0)] = 2500  # longest pulse (µs)
    speed_deg_per_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # highest speed (degrees per second); 0: unlimited
    at_stop: Literal["hold", "release"] = "hold"  # stop holds the angle, or ends the pulses to release the shaft

    def __post_init__(self) -> None:
        if self.min_angle_deg >= self.max_angle_deg:
            raise ValueError(f"min_angle_deg {self.min_angle_deg:g} is not below max_angle_deg {self.max_angle_deg:g}")
        if self.min_width_us >= self.max_width_us:
            raise ValueError(f"min_width_us {self.min_width_us} is not below max_width_us {self.max_width_us}")
        if self.max_width_us * self.frequency_hz > 1_000_000:
            raise ValueError(
                f"a pulse of {self.max_width_us} µs is longer than a period at {self.frequency_hz} Hz: "
                f"use at most {1_000_000 // self.max_width_us} Hz"
            )
        start = self.starting_position_deg
        if start is not None and not self.min_angle_deg <= start <= self.max_angle_deg:
            raise ValueError(
                f"starting_position_deg {start:g} is not within {self.min_angle_deg:g} to {self.max_angle_deg:g}"
            )

    def duty(self, angle: float) -> float:
        """Return the duty cycle of `angle`, rounded to the PWM resolution of the board if known."""
        share = (angle - self.min_angle_deg) / (self.max_angle_deg - self.min_angle_deg)
        width = self.min_width_us + share * (self.max_width_us - self.min_width_us)
        duty = width * self.frequency_hz / 1_000_000
        return round(duty * self.pwm_resolution) / self.pwm_resolution if self.pwm_resolution else duty

    def requires(self) -> list[str]:
        """Require the board."""
        return [self.board]

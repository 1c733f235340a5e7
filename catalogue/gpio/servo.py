"""Attributes that `runtime.builtin.gpio.servo` reads."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from schema.attributes import Attributes


class GpioServoConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a servo on a pin with PWM."""

    board: str  # name of the board with the pin
    pin: str  # pin of that board, with PWM
    min_angle_deg: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # the angle of the shortest pulse (degrees)
    max_angle_deg: Annotated[float, msgspec.Meta(gt=0)] = 180.0  # the angle of the longest pulse (degrees)
    starting_position_deg: float | None = None  # where it goes when it starts; not given: nowhere until moved
    frequency_hz: Annotated[int, msgspec.Meta(ge=50, le=450)] = 300  # pulses per second; analog servos need 50
    pwm_resolution: Annotated[int, msgspec.Meta(ge=0)] = 0  # steps of one period that the board can make; 0: not known
    min_width_us: Annotated[int, msgspec.Meta(gt=0)] = 500  # the shortest pulse (µs)
    max_width_us: Annotated[int, msgspec.Meta(gt=0)] = 2500  # the longest pulse (µs)
    speed_deg_per_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # the greatest speed (degrees per second); 0: its own
    at_stop: Literal["hold", "release"] = "hold"  # stop holds the angle, or ends the pulses so that it gives way

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
        """Share of a period that the pulse of `angle` takes, as exactly as the board can make it."""
        share = (angle - self.min_angle_deg) / (self.max_angle_deg - self.min_angle_deg)
        width = self.min_width_us + share * (self.max_width_us - self.min_width_us)
        duty = width * self.frequency_hz / 1_000_000
        return round(duty * self.pwm_resolution) / self.pwm_resolution if self.pwm_resolution else duty

    def requires(self) -> list[str]:
        """Its board."""
        return [self.board]

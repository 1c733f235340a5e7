"""Attributes of a stepper on pins. Pure."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from schema import Attributes

MAX_STEP_RATE: Final = 2000.0  # steps per second; faster steps are late too often, see docs/howto/drive-a-motor.md


class StepperPins(msgspec.Struct, kw_only=True, frozen=True):
    """Pins of the board that are connected to the driver chip."""

    step: str  # a rising edge is a step
    dir: str  # high: forward
    en_high: str = ""  # enables the chip: high while the motor is powered
    en_low: str = ""  # enables the chip: low while the motor is powered

    def __post_init__(self) -> None:
        if len(set(self.all())) != len(self.all()):
            raise ValueError("a pin is named twice: give each signal a pin of its own")

    def all(self) -> list[str]:
        """Return every configured pin."""
        return [pin for pin in (self.step, self.dir, self.en_high, self.en_low) if pin]


class GpioStepperConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a stepper motor on pins."""

    board: str  # name of the board with the pins
    pins: StepperPins  # pins of that board
    ticks_per_rotation: Annotated[int, msgspec.Meta(gt=0)] = 200  # full steps per revolution
    microsteps: Annotated[int, msgspec.Meta(gt=0)] = 1  # microsteps per full step, as set on the driver chip
    max_rpm: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # highest speed in rpm; 0: 2000 steps per second
    acceleration_rpm_per_s: Annotated[float, msgspec.Meta(ge=0)] = 300.0  # speed change per second; 0: unlimited
    stepper_delay_usec: Annotated[int, msgspec.Meta(ge=0)] = 0  # shortest time (µs) of the step pin at high, and at low
    idle: Literal["release", "hold"] = "release"  # at rest: release switches power off, hold keeps torque

    def __post_init__(self) -> None:
        if self.max_rpm * self.steps / 60 > self.step_rate * (1 + 1e-9):
            raise ValueError(
                f"max_rpm {self.max_rpm:g} at {self.steps} steps per revolution is more than {self.step_rate:g} steps "
                f"per second: use at most {self.step_rate * 60 / self.steps:g}, or fewer microsteps"
            )

    @property
    def steps(self) -> int:
        """Microsteps per revolution."""
        return self.ticks_per_rotation * self.microsteps

    @property
    def step_rate(self) -> float:
        """The highest possible step rate, in steps per second."""
        return min(MAX_STEP_RATE, 500_000 / self.stepper_delay_usec) if self.stepper_delay_usec else MAX_STEP_RATE

    def requires(self) -> list[str]:
        """Require the board."""
        return [self.board]

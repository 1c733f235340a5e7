"""Attributes that `runtime.builtin.gpio.stepper` reads."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from schema.attributes import Attributes

MAX_STEP_RATE: Final = 2000.0  # steps per second; above it beats come late too often. docs/howto/drive-a-motor.md


class StepperPins(msgspec.Struct, kw_only=True, frozen=True):
    """Pins of the board that are wired to the driver chip."""

    step: str  # a rise is a step
    dir: str  # high is forward
    en_high: str = ""  # enables the chip: high while it is powered
    en_low: str = ""  # enables the chip: low while it is powered

    def __post_init__(self) -> None:
        if len(set(self.all())) != len(self.all()):
            raise ValueError("a pin is named twice")

    def all(self) -> list[str]:
        """Every pin that is given."""
        return [pin for pin in (self.step, self.dir, self.en_high, self.en_low) if pin]


class GpioStepperConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a stepping motor on pins."""

    board: str  # name of the board with the pins
    pins: StepperPins  # pins of that board
    ticks_per_rotation: Annotated[int, msgspec.Meta(gt=0)] = 200  # full steps of one revolution
    microsteps: Annotated[int, msgspec.Meta(gt=0)] = 1  # steps of the driver chip for each full step, as it is set
    max_rpm: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # the greatest speed, per minute; 0: 2000 steps per second
    acceleration_rpm_per_s: Annotated[float, msgspec.Meta(ge=0)] = 300.0  # change of speed by second; 0: at once
    stepper_delay_usec: Annotated[int, msgspec.Meta(ge=0)] = 0  # the least time (µs) of the step input high, and low
    idle: Literal["release", "hold"] = "release"  # at rest: release takes the power away, hold keeps the torque

    def __post_init__(self) -> None:
        if self.max_rpm * self.steps / 60 > self.step_rate * (1 + 1e-9):
            raise ValueError(
                f"max_rpm {self.max_rpm:g} at {self.steps} steps per revolution is more than {self.step_rate:g} steps "
                f"per second: use at most {self.step_rate * 60 / self.steps:g}, or fewer microsteps"
            )

    @property
    def steps(self) -> int:
        """Steps of one revolution."""
        return self.ticks_per_rotation * self.microsteps

    @property
    def step_rate(self) -> float:
        """Steps per second that are possible at most."""
        return min(MAX_STEP_RATE, 500_000 / self.stepper_delay_usec) if self.stepper_delay_usec else MAX_STEP_RATE

    def requires(self) -> list[str]:
        """Its board."""
        return [self.board]

"""Attributes of a motor on pins. Pure."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from models.gpio.motor.bridge_pins import BridgePins
from schema import Attributes

MIN_PERIOD_MS: Final = 2


class ControlParameters(msgspec.Struct, kw_only=True, frozen=True):
    """Gains of the speed control; all 0 means the defaults. Speed errors are shares of max_rpm."""

    p: Annotated[float, msgspec.Meta(ge=0)] = 0.5  # power per speed error
    i: Annotated[float, msgspec.Meta(ge=0)] = 5.0  # power per speed error integrated over seconds
    d: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # power per change of the speed error per second


class GpioMotorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a DC motor on pins."""

    board: str  # name of the board with the pins
    pins: BridgePins  # pins of that board
    max_rpm: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # speed at full power in rpm; 0 with an encoder: 100
    encoder: str = ""  # name of the encoder on the shaft
    ticks_per_rotation: Annotated[int, msgspec.Meta(ge=0)] = 0  # encoder ticks per revolution; required with an encoder
    dir_flip: bool = False  # mounted mirrored: reverses the motor and the encoder
    pwm_freq: Annotated[int, msgspec.Meta(ge=0)] = 800  # PWM frequency on the pins (Hz); 0: the board's
    min_power_pct: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0  # lowest power that turns the motor, 0 to 1
    max_power_pct: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0  # highest power that is applied, 0 to 1
    ramp_rate: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05  # speed change per 50 ms, as a share of max_rpm
    control_parameters: ControlParameters = ControlParameters()  # used with an encoder
    control_period_ms: Annotated[int, msgspec.Meta(ge=MIN_PERIOD_MS, le=1000)] = 20  # period of the control loop
    stall_s: Annotated[float, msgspec.Meta(ge=0)] = 2.0  # stop after full power without a tick for this time; 0: never

    def __post_init__(self) -> None:
        if self.encoder and not self.ticks_per_rotation:
            raise ValueError("ticks_per_rotation must be given with an encoder")
        if self.min_power_pct > self.max_power_pct:
            raise ValueError(f"min_power_pct {self.min_power_pct:g} is above max_power_pct {self.max_power_pct:g}")

    def requires(self) -> list[str]:
        """Require the board, and the encoder if configured."""
        return [name for name in (self.board, self.encoder) if name]

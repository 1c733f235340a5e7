"""Attributes that `runtime.builtin.gpio.motor` reads."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from catalogue.gpio.bridge import BridgePins
from hal.control.speed import DEFAULT_GAINS
from schema.attributes import Attributes

MIN_PERIOD_MS: Final = 2


class ControlParameters(msgspec.Struct, kw_only=True, frozen=True):
    """Gains of the speed control; all 0 means the defaults. Errors are shares of max_rpm, whatever that is."""

    p: Annotated[float, msgspec.Meta(ge=0)] = DEFAULT_GAINS.p  # power per speed error
    i: Annotated[float, msgspec.Meta(ge=0)] = DEFAULT_GAINS.i  # power per speed error and second
    d: Annotated[float, msgspec.Meta(ge=0)] = DEFAULT_GAINS.d  # power per change of the speed error by second


class GpioMotorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a DC motor on pins."""

    board: str  # name of the board with the pins
    pins: BridgePins  # pins of that board
    max_rpm: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # speed at full power, per minute; 100 with an encoder
    encoder: str = ""  # name of the encoder on its shaft
    ticks_per_rotation: Annotated[int, msgspec.Meta(ge=0)] = 0  # of the encoder, for one revolution; needed with one
    dir_flip: bool = False  # built in mirrored: forward is the other way, also for the encoder
    pwm_freq: Annotated[int, msgspec.Meta(ge=0)] = 800  # Hz of the wave on the pins; 0 leaves the board's
    min_power_pct: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0  # the least power that turns it, 0 to 1
    max_power_pct: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0  # the most power that is applied, 0 to 1
    ramp_rate: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05  # change of speed, as a share of max_rpm, in 50 ms
    control_parameters: ControlParameters = ControlParameters()  # with an encoder
    control_period_ms: Annotated[int, msgspec.Meta(ge=MIN_PERIOD_MS, le=1000)] = 20  # beat of the control loop
    stall_s: Annotated[float, msgspec.Meta(ge=0)] = 2.0  # full power without a tick for so long stops it; 0: never

    def __post_init__(self) -> None:
        if self.encoder and not self.ticks_per_rotation:
            raise ValueError("ticks_per_rotation must be given with an encoder")
        if self.min_power_pct > self.max_power_pct:
            raise ValueError(f"min_power_pct {self.min_power_pct:g} is above max_power_pct {self.max_power_pct:g}")

    def requires(self) -> list[str]:
        """Its board and its encoder."""
        return [name for name in (self.board, self.encoder) if name]

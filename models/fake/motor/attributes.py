"""Attributes of the simulated motor. Pure."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from schema import Attributes

PWM_FREQUENCY: Final = 800  # Hz


class Pins(msgspec.Struct, kw_only=True, frozen=True):
    """Pins of the board that control the motor's bridge: `a` and `b`, or `dir`; each with an optional `pwm`."""

    a: str = ""  # forward
    b: str = ""  # reverse
    dir: str = ""  # high: forward
    pwm: str = ""  # magnitude of the power
    en_high: str = ""  # high while powered
    en_low: str = ""  # low while powered


class FakeMotorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated motor. With a board and pins, it sets the pins and turns as their levels command."""

    board: str = ""  # name of the board with the pins
    pins: Pins | None = None  # pins of that board; ignored without a board
    pwm_freq: Annotated[int, msgspec.Meta(ge=0)] = PWM_FREQUENCY  # PWM frequency on the pins (Hz)
    min_power_pct: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0  # lowest power that is applied, 0 to 1
    max_power_pct: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0  # highest power that is applied, 0 to 1
    encoder: str = ""  # name of the encoder on the shaft
    max_rpm: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # speed at full power in rpm; 0 means 100
    ticks_per_rotation: Annotated[int, msgspec.Meta(ge=0)] = 0  # encoder ticks per revolution; required with an encoder
    dir_flip: bool = False  # the motor is mounted mirrored
    direction_flip: bool = False  # another name of dir_flip

    def __post_init__(self) -> None:
        if self.encoder and not self.ticks_per_rotation:
            raise ValueError("ticks_per_rotation must be given with an encoder")
        if self.min_power_pct > self.max_power_pct:
            raise ValueError("min_power_pct is above max_power_pct")

    def requires(self) -> list[str]:
        """Require the board and the encoder, if configured."""
        return [name for name in (self.board, self.encoder) if name]

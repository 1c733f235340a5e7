"""Attributes that `runtime.builtin.fake.motor` reads."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from schema.attributes import Attributes

PWM_FREQUENCY: Final = 800  # Hz


class Pins(msgspec.Struct, kw_only=True, frozen=True):
    """Pins of the board that feed the motor's bridge: `a` and `b`, or `dir`; `pwm` with either."""

    a: str = ""  # forward
    b: str = ""  # reverse
    dir: str = ""  # high is forward
    pwm: str = ""  # magnitude
    en_high: str = ""  # high while powered
    en_low: str = ""  # low while powered


class FakeMotorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated motor. With a board and pins it really drives them, and the pins drive it."""

    board: str = ""  # name of the board with the pins
    pins: Pins | None = None  # pins of that board; without a board they do nothing
    pwm_freq: Annotated[int, msgspec.Meta(ge=0)] = PWM_FREQUENCY  # Hz of the wave on the pins
    min_power_pct: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0  # the least power that is applied, 0 to 1
    max_power_pct: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0  # the most power that is applied, 0 to 1
    encoder: str = ""  # name of the encoder on its shaft
    max_rpm: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # speed at full power, per minute; 0 means 100
    ticks_per_rotation: Annotated[int, msgspec.Meta(ge=0)] = 0  # of the encoder; needed with one
    dir_flip: bool = False  # it is built in mirrored
    direction_flip: bool = False  # the same by its other name

    def __post_init__(self) -> None:
        if self.encoder and not self.ticks_per_rotation:
            raise ValueError("ticks_per_rotation must be given with an encoder")
        if self.min_power_pct > self.max_power_pct:
            raise ValueError("min_power_pct is above max_power_pct")

    def requires(self) -> list[str]:
        """Its board and its encoder."""
        return [name for name in (self.board, self.encoder) if name]

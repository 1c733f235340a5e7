"""Attributes of `sensor-controlled`. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from schema import Attributes

Gain = Annotated[float, msgspec.Meta(ge=0)]


class ControlParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Gains of the controller of one velocity: correction of the velocity for an error of it. All 0: the defaults."""

    type: Literal["linear_velocity", "angular_velocity"]  # the velocity that is controlled
    p: Gain = 0.0  # correction for an error
    i: Gain = 0.0  # correction for each second of an error
    d: Gain = 0.0  # correction for the change of an error in a second


class SensorControlledBaseConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a base that is driven by what movement sensors measure."""

    movement_sensor: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # names of the movement sensors on the base
    base: str  # name of the base that is driven
    control_parameters: tuple[ControlParameters, ...] = ()  # gains; default: p 0.3 and i 1
    control_frequency_hz: Annotated[float, msgspec.Meta(gt=0, le=100)] = 10.0  # corrections in a second

    def __post_init__(self) -> None:
        types = [each.type for each in self.control_parameters]
        if len(set(types)) != len(types):
            raise ValueError("control_parameters has two entries of the same type")

    def requires(self) -> list[str]:
        """Require the base and the sensors."""
        return [self.base, *self.movement_sensor]

"""Attributes of the simulated input controller. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from models.common.controls import CONTROLS
from schema import Attributes


class FakeInputControllerConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated gamepad."""

    controls: tuple[str, ...] = ("AbsoluteX", "ButtonStart")  # names of the controls
    event_value: float | None = None  # value of the repeated event; default: seeded random values from 0 to 1
    update_rate_ms: Annotated[int, msgspec.Meta(gt=0)] = 1000  # time between repeated events while a client listens
    callback_delay_sec: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # replaces update_rate_ms if not 0 (seconds)

    def __post_init__(self) -> None:
        for control in self.controls:
            if control not in CONTROLS:
                raise ValueError(f"control {control!r} is not one of {', '.join(CONTROLS)}")

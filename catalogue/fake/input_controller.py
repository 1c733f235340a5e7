"""Attributes that `runtime.builtin.fake.input_controller` reads."""

from __future__ import annotations

from typing import Annotated

import msgspec

from catalogue.controls import CONTROLS
from schema.attributes import Attributes


class FakeInputControllerConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated gamepad."""

    controls: tuple[str, ...] = ("AbsoluteX", "ButtonStart")  # names of its controls
    event_value: float | None = None  # value of the repeated event; a seeded random one from 0 to 1 if not given
    update_rate_ms: Annotated[int, msgspec.Meta(gt=0)] = 1000  # between repeated events, while somebody listens
    callback_delay_sec: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # the same in seconds, if not 0

    def __post_init__(self) -> None:
        for control in self.controls:
            if control not in CONTROLS:
                raise ValueError(f"control {control!r} is not one of {', '.join(CONTROLS)}")

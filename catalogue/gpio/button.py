"""Attributes that `runtime.builtin.gpio.button` reads."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema.attributes import Attributes


class GpioButtonConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a button that a pin pushes."""

    board: str  # name of the board with the pin
    pin: str  # pin of that board
    press_ms: Annotated[int, msgspec.Meta(gt=0)] = 100  # how long a push lasts (ms)
    active_low: bool = False  # pushed is low

    def requires(self) -> list[str]:
        """Its board."""
        return [self.board]

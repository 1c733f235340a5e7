"""Attributes of a button on pins. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class GpioButtonConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a button that is pushed by a pin."""

    board: str  # name of the board with the pin
    pin: str  # pin of that board
    press_ms: Annotated[int, msgspec.Meta(gt=0)] = 100  # duration of a push (ms)
    active_low: bool = False  # the pin is low while the button is pushed

    def requires(self) -> list[str]:
        """Require the board."""
        return [self.board]

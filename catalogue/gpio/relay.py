"""Attributes that `runtime.builtin.gpio.relay` reads."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from schema.attributes import Attributes

OFF: Final = 0


class RelayConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a relay."""

    board: str  # name of the board with the pin
    pin: str  # pin of that board
    active_low: bool = False  # the relay is on when the pin is low
    safe_position: Literal[0, 1] = OFF  # 0 off, 1 on: the position at start, when it stops, and when switching fails
    min_on_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # seconds that it stays on at least
    min_off_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # seconds that it stays off at least, also after the start

    def requires(self) -> list[str]:
        """Its board."""
        return [self.board]

"""Attributes of a relay on pins. Pure."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from schema import Attributes

OFF: Final = 0


class RelayConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a relay."""

    board: str  # name of the board with the pin
    pin: str  # pin of that board
    active_low: bool = False  # the relay is on when the pin is low
    safe_position: Literal[0, 1] = OFF  # position at start, at stop and when switching fails: 0 off, 1 on
    min_on_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # shortest time on (seconds)
    min_off_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # shortest time off (seconds), also after the start

    def requires(self) -> list[str]:
        """Require the board."""
        return [self.board]

"""Attributes of an input sensor on pins. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class GpioInputConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a sensor on input pins."""

    board: str  # name of the board with the pins
    pins: Annotated[dict[str, str], msgspec.Meta(min_length=1)]  # name of a reading -> pin of that board
    invert: tuple[str, ...] = ()  # names of the readings that are true while their pin is low

    def __post_init__(self) -> None:
        for name in self.invert:
            if name not in self.pins:
                raise ValueError(f"invert contains {name!r}, which is not one of {', '.join(self.pins)}")

    def requires(self) -> list[str]:
        """Require the board."""
        return [self.board]

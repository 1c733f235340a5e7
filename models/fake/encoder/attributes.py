"""Attributes of the simulated encoder. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class Pins(msgspec.Struct, kw_only=True, frozen=True):
    """Pins of the board with the encoder's signals: `a` and `b`, or only `i`."""

    a: str = ""  # track A
    b: str = ""  # track B, a quarter of a period after A when turning forward
    i: str = ""  # the track of an encoder that does not detect direction


class FakeEncoderConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated encoder. A motor that names it turns it."""

    board: str = ""  # name of the board with the pins
    pins: Pins | None = None  # pins of that board; ignored without a board
    update_rate_msec: Annotated[int, msgspec.Meta(ge=0)] = 0  # accepted but ignored: the encoder is always up to date

    def requires(self) -> list[str]:
        """Require the board, if configured."""
        return [self.board] if self.board else []

"""Attributes that `runtime.builtin.fake.encoder` reads."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema.attributes import Attributes


class Pins(msgspec.Struct, kw_only=True, frozen=True):
    """Pins of the board that carry the encoder's signals: `a` and `b`, or `i` alone."""

    a: str = ""  # track A
    b: str = ""  # track B, a quarter period later when turning forward
    i: str = ""  # the only track of an encoder without direction


class FakeEncoderConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated encoder. A motor that names it carries its disc."""

    board: str = ""  # name of the board with the pins
    pins: Pins | None = None  # pins of that board; without a board they do nothing
    update_rate_msec: Annotated[int, msgspec.Meta(ge=0)] = 0  # accepted, without meaning here: it is always up to date

    def requires(self) -> list[str]:
        """Its board."""
        return [self.board] if self.board else []

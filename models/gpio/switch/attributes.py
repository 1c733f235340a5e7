"""Attributes of a switch on pins. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from schema import Attributes


class GpioSwitchConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a switch on pins."""

    board: str  # name of the board with the pins
    pins: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # pins of that board; for binary, lowest bit first
    encoding: Literal["one_hot", "binary"] = "one_hot"  # one_hot: a pin per position; binary: position number
    position_count: Annotated[int, msgspec.Meta(ge=1)] | None = None  # default: as many as the pins can encode
    labels: tuple[str, ...] = ()  # names of the positions: either none, or one for each position
    safe_position: Annotated[int, msgspec.Meta(ge=0)] = 0  # the position at start and at stop
    active_low: bool = False  # a pin is on when it is low

    def __post_init__(self) -> None:
        if len(set(self.pins)) != len(self.pins):
            raise ValueError("a pin is named twice")
        if self.count > self.most:
            raise ValueError(
                f"{self.count} positions on {len(self.pins)} pins: {self.encoding} can encode at most {self.most}"
            )
        if self.labels and len(self.labels) != self.count:
            raise ValueError(f"{len(self.labels)} labels for {self.count} positions")
        if self.safe_position >= self.count:
            raise ValueError(f"safe_position {self.safe_position} is not below {self.count}")

    @property
    def most(self) -> int:
        """The largest number of positions that the pins can encode."""
        return len(self.pins) if self.encoding == "one_hot" else int(2 ** len(self.pins))

    @property
    def count(self) -> int:
        """Number of positions."""
        return self.position_count or self.most

    def levels(self, position: int) -> dict[str, bool]:
        """Return for each pin whether it is on in the position."""
        if self.encoding == "one_hot":
            return {pin: index == position for index, pin in enumerate(self.pins)}
        return {pin: bool(position >> bit & 1) for bit, pin in enumerate(self.pins)}

    def requires(self) -> list[str]:
        """Require the board."""
        return [self.board]

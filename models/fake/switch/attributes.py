"""Attributes of the simulated switch. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class FakeSwitchConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated switch."""

    position_count: Annotated[int, msgspec.Meta(ge=1)] | None = None  # default: the number of labels, or 2
    labels: tuple[str, ...] = ()  # names of the positions: either none, or one for each position
    initial_position: Annotated[int, msgspec.Meta(ge=0)] = 0  # the position at start

    def __post_init__(self) -> None:
        if self.labels and self.position_count is not None and len(self.labels) != self.position_count:
            raise ValueError(f"{len(self.labels)} labels for {self.position_count} positions")
        if self.initial_position >= self.count:
            raise ValueError(f"initial_position {self.initial_position} is not below {self.count}")

    @property
    def count(self) -> int:
        """Number of positions."""
        return self.position_count or len(self.labels) or 2

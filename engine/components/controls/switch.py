"""Switch: a control with a fixed number of positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from engine.resource import Component, Extra
from schema import API


@dataclass(frozen=True, slots=True)
class SwitchPositions:
    """The number of positions, and either one label for each position or no labels."""

    number_of_positions: int
    labels: Sequence[str] = ()


class Switch(Component):
    """A switch; its positions are numbered from 0."""

    API: ClassVar[API] = API("rdk", "component", "switch")

    async def set_position(self, position: int, *, extra: Extra = None) -> None:
        """Set the position."""
        raise NotImplementedError

    async def get_position(self, *, extra: Extra = None) -> int:
        """Return the current position."""
        raise NotImplementedError

    async def get_number_of_positions(self, *, extra: Extra = None) -> SwitchPositions:
        """Return the number of positions and their labels."""
        raise NotImplementedError

"""Switch: has a few positions and is in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from runtime.resource import Component, Extra
from schema.names import API


@dataclass(frozen=True, slots=True)
class SwitchPositions:
    """How many positions there are, and their labels if they have any: none or one each."""

    number_of_positions: int
    labels: Sequence[str] = ()


class Switch(Component):
    """Something with positions from 0 to one less than their number."""

    API: ClassVar[API] = API("rdk", "component", "switch")

    async def set_position(self, position: int, *, extra: Extra = None) -> None:
        """Go to a position."""
        raise NotImplementedError

    async def get_position(self, *, extra: Extra = None) -> int:
        """The present position."""
        raise NotImplementedError

    async def get_number_of_positions(self, *, extra: Extra = None) -> SwitchPositions:
        """How many positions there are, and their labels."""
        raise NotImplementedError

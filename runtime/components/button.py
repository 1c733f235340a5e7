"""Button: something that can be pushed."""

from __future__ import annotations

from typing import ClassVar

from runtime.resource import Component, Extra
from schema.names import API


class Button(Component):
    """Pushed, it does its one thing."""

    API: ClassVar[API] = API("rdk", "component", "button")

    async def push(self, *, extra: Extra = None) -> None:
        """Push it once."""
        raise NotImplementedError

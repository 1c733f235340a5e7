"""Button: a control that can be pushed."""

from __future__ import annotations

from typing import ClassVar

from engine.resource import Component, Extra
from schema import API


class Button(Component):
    """A button with a single action."""

    API: ClassVar[API] = API("rdk", "component", "button")

    async def push(self, *, extra: Extra = None) -> None:
        """Push the button once."""
        raise NotImplementedError

"""Attributes of an input controller on pins. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec

from schema import Attributes


class Contact(msgspec.Struct, kw_only=True, frozen=True):
    """A button or a toggle switch."""

    control: str  # name of the control: ButtonStart, AbsoluteX, or a custom name
    invert: bool = False  # low means pressed, or on
    debounce_msec: Annotated[float, msgspec.Meta(ge=-1)] = 5.0  # how long a level must last (ms); -1, 0: any


class GpioInputControllerConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of an input controller on digital interrupts of a board."""

    NOT_BUILT: ClassVar[Mapping[str, str]] = {"axes": "axes on analog inputs"}

    board: str  # name of the board with the pins
    buttons: dict[str, Contact] = msgspec.field(default_factory=dict)  # interrupt -> button: ButtonPress, ButtonRelease
    toggles: dict[str, Contact] = msgspec.field(default_factory=dict)  # interrupt -> toggle: PositionChangeAbs, 0 or 1

    def __post_init__(self) -> None:
        contacts = [*self.buttons.values(), *self.toggles.values()]
        if not contacts:
            raise ValueError("give buttons or toggles")
        names = [contact.control for contact in contacts]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two contacts are called {name}")
        for pin in self.buttons:
            if pin in self.toggles:
                raise ValueError(f"{pin} is both a button and a toggle")

    def requires(self) -> list[str]:
        """Require the board."""
        return [self.board]

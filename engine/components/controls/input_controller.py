"""Input controller: a gamepad, a keyboard, a row of buttons."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from engine.resource import Component, Extra
from schema import API

EVENTS: tuple[str, ...] = (
    "AllEvents",  # only to subscribe
    "Connect",
    "Disconnect",
    "ButtonPress",
    "ButtonRelease",
    "ButtonHold",
    "ButtonChange",  # only to subscribe: press and release
    "PositionChangeAbs",
    "PositionChangeRel",
)
"""Names of the events that all clients support."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a control. `value` is 0 or 1 for buttons, -1 to 1 for axes."""

    time: datetime | None
    event: str
    control: str
    value: float


@dataclass(frozen=True, slots=True)
class Subscription:
    """Events of a control to subscribe to, and events to cancel."""

    control: str
    events: Sequence[str] = ()
    cancelled_events: Sequence[str] = ()


class InputController(Component):
    """A device with controls that a person operates."""

    API: ClassVar[API] = API("rdk", "component", "input_controller")

    async def get_controls(self, *, extra: Extra = None) -> Sequence[str]:
        """Return the names of the controls, using those in the published list where they apply."""
        raise NotImplementedError

    async def get_events(self, *, extra: Extra = None) -> Sequence[Event]:
        """Return the last event of each control, which is its current state."""
        raise NotImplementedError

    def stream_events(self, events: Sequence[Subscription], *, extra: Extra = None) -> AsyncGenerator[Event, None]:
        """Yield the subscribed events as they occur, until closed."""
        raise NotImplementedError

    async def trigger_event(self, event: Event, *, extra: Extra = None) -> None:
        """Simulate `event`."""
        raise NotImplementedError

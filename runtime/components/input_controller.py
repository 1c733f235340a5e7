"""Input controller: a gamepad, a keyboard, a row of buttons."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from runtime.resource import Component, Extra
from schema.names import API

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
"""Names of events that every client knows."""


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a control: 0 or 1 for buttons, -1 to 1 for axes."""

    time: datetime | None
    event: str
    control: str
    value: float


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which events of a control are wanted, and which no longer."""

    control: str
    events: Sequence[str] = ()
    cancelled_events: Sequence[str] = ()


class InputController(Component):
    """Something that a person operates."""

    API: ClassVar[API] = API("rdk", "component", "input_controller")

    async def get_controls(self, *, extra: Extra = None) -> Sequence[str]:
        """Names of the controls, from CONTROLS where they fit."""
        raise NotImplementedError

    async def get_events(self, *, extra: Extra = None) -> Sequence[Event]:
        """The last event of each control: its present state."""
        raise NotImplementedError

    def stream_events(self, events: Sequence[Subscription], *, extra: Extra = None) -> AsyncGenerator[Event, None]:
        """Yield the subscribed events as they come, without end."""
        raise NotImplementedError

    async def trigger_event(self, event: Event, *, extra: Extra = None) -> None:
        """Act as if `event` had happened."""
        raise NotImplementedError

"""Input controller `webgamepad`: the events that a page in a browser triggers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from math import inf
from typing import ClassVar, Final

import trio

from engine import Actuator, Attributes, Event, Extra, InputController, Started, Subscription, model
from models.common.listeners import Listeners
from models.common.motion import check_finite
from models.devices.webgamepad.attributes import WebGamepadConfig
from schema import ErrorKind, MachineError

CONTROLS: Final = (
    *(f"Absolute{axis}" for axis in ("X", "Y", "RX", "RY", "Z", "RZ", "Hat0X", "Hat0Y")),
    *(f"Button{name}" for name in ("South", "East", "West", "North", "LT", "RT", "LThumb", "RThumb")),
    *(f"Button{name}" for name in ("Select", "Start", "Menu")),
)
"""Controls of the standard gamepad of browsers (W3C Gamepad, "Remapping") for which clients have names."""


@model("rdk:builtin:webgamepad")
class WebGamepad(Actuator, InputController):
    """Has the controls of a standard gamepad. Each starts with Disconnect, until an event of it is triggered.

    A browser that vanishes sends nothing. With `disconnect_after_ms`, controls that are not at rest then return to it
    and send Disconnect, so that what they drive stops: the page has to repeat its events more often than that. The
    same happens when the session or the connection of the browser ends, and on StopAll.
    """

    Config: ClassVar[type[Attributes]] = WebGamepadConfig

    async def run(self, *, task_status: Started) -> None:
        """Accept events until cancelled."""
        config: WebGamepadConfig = self.attributes
        self._listeners = Listeners()
        self._arrived = trio.Event()
        for control in CONTROLS:
            self._listeners.publish(_at_rest(control))
        task_status.started()
        limit = config.disconnect_after_ms / 1000 or inf
        while True:
            self._arrived = trio.Event()
            with trio.move_on_after(limit if self._in_use else inf) as waiting:
                await self._arrived.wait()
            if waiting.cancelled_caught:
                self.log.warning("the browser has sent no events", seconds=limit)
                self._release()

    def _release(self) -> None:
        for control, event in list(self._listeners.last.items()):
            if event.event != "Disconnect":
                self._listeners.publish(_at_rest(control))

    async def stop(self, *, extra: Extra = None) -> None:
        """Let go of all controls."""
        await trio.lowlevel.checkpoint()
        self._release()

    async def is_moving(self) -> bool:
        """Return whether a control is held."""
        await trio.lowlevel.checkpoint()
        return self._in_use

    @property
    def _in_use(self) -> bool:
        return any(event.value for event in self._listeners.last.values())

    async def get_controls(self, *, extra: Extra = None) -> Sequence[str]:
        """Return the controls of a standard gamepad."""
        await trio.lowlevel.checkpoint()
        return CONTROLS

    async def get_events(self, *, extra: Extra = None) -> Sequence[Event]:
        """Return the last event of each control."""
        await trio.lowlevel.checkpoint()
        return [self._listeners.last[control] for control in CONTROLS]

    async def stream_events(
        self, events: Sequence[Subscription], *, extra: Extra = None
    ) -> AsyncGenerator[Event, None]:
        """Stream the subscribed events. INVALID for a control that does not exist."""
        for subscription in events:
            self._check(subscription.control)
        async with aclosing(self._listeners.stream(events)) as stream:
            async for event in stream:
                yield event

    async def trigger_event(self, event: Event, *, extra: Extra = None) -> None:
        """Accept an event of the browser; an event without a time happens now. INVALID for an unknown control."""
        self._check(event.control)
        check_finite("the value of the event", event.value)
        await trio.lowlevel.checkpoint()
        self._listeners.publish(event if event.time is not None else _now(event.event, event.control, event.value))
        self._arrived.set()

    def _check(self, control: str) -> None:
        if control not in CONTROLS:
            raise MachineError(
                f"{self.name} has no control {control!r}",
                kind=ErrorKind.INVALID,
                remedy=f"use one of {', '.join(CONTROLS)}",
            )


def _at_rest(control: str) -> Event:
    return _now("Disconnect", control, 0.0)


def _now(kind: str, control: str, value: float) -> Event:
    return Event(datetime.now(UTC), kind, control, value)

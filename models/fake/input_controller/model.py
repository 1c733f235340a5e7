"""A simulated gamepad that repeats events while a client listens, and accepts triggered events."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import ClassVar, Final

import trio

from engine import Actuator, Attributes, Context, Event, Extra, InputController, Subscription, model
from models.common.listeners import is_subscribed
from models.fake.common.simulated import SimulatedResource
from models.fake.input_controller.attributes import FakeInputControllerConfig
from schema import ErrorKind, MachineError

EVENT_BUFFER: Final = 64  # events buffered for a slow listener; further ones are dropped


@model("rdk:builtin:fake")
class FakeInputController(Actuator, SimulatedResource, InputController):
    """Each listener receives its own repeated events. Without listeners, no events occur."""

    Config: ClassVar[type[Attributes]] = FakeInputControllerConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._rng = random.Random(f"{context.world.seed}:{context.name}")
        self._last: dict[str, Event] = {}
        self._listeners: set[trio.MemorySendChannel[Event]] = set()

    def _repeated(self, control: str) -> Event:
        fixed = self.attributes.event_value
        value = self._rng.random() if fixed is None else fixed
        return Event(_now(), "PositionChangeAbs" if control.startswith("Absolute") else "ButtonHold", control, value)

    async def get_controls(self, *, extra: Extra = None) -> Sequence[str]:
        """Return the configured controls."""
        await self.access()
        return tuple(self.attributes.controls)

    async def get_events(self, *, extra: Extra = None) -> Sequence[Event]:
        """Return the last event of each control; Connect before the first event."""
        await self.access()
        fixed = self.attributes.event_value or 0.0
        return [self._last.get(c) or Event(_now(), "Connect", c, fixed) for c in self.attributes.controls]

    async def stream_events(
        self, events: Sequence[Subscription], *, extra: Extra = None
    ) -> AsyncGenerator[Event, None]:
        """Stream triggered events, and one event of each control per period."""
        for subscription in events:
            self._check_control(subscription.control)
        start = await self.access()
        period = self.attributes.callback_delay_sec or self.attributes.update_rate_ms / 1000
        send, receive = trio.open_memory_channel[Event](EVENT_BUFFER)
        self._listeners.add(send)
        try:
            periods = 1
            while True:
                event = None
                with trio.move_on_after(max(0.0, start + periods * period - self.world.now())):
                    event = await receive.receive()
                if event is not None:
                    if is_subscribed(event, events):
                        yield event
                    continue
                periods += 1
                for control in self.attributes.controls:
                    repeated = self._repeated(control)
                    if is_subscribed(repeated, events):
                        self._last[control] = repeated
                        yield repeated
        finally:
            self._listeners.discard(send)

    async def trigger_event(self, event: Event, *, extra: Extra = None) -> None:
        """Send an event to every listener; listeners that are too slow miss it."""
        self._check_control(event.control)
        await self.access()
        self._send(event if event.time is not None else Event(_now(), event.event, event.control, event.value))

    async def stop(self, *, extra: Extra = None) -> None:
        """Let go of the controls that are held; repeated events continue."""
        await self.access()
        for control, event in list(self._last.items()):
            if event.value:
                self._send(Event(_now(), "Disconnect", control, 0.0))

    async def is_moving(self) -> bool:
        """Return whether a control is held."""
        await self.access()
        return any(event.value for event in self._last.values())

    def _send(self, event: Event) -> None:
        self._last[event.control] = event
        for listener in self._listeners:
            try:
                listener.send_nowait(event)
            except trio.WouldBlock:
                self.log.warning("a listener is too slow and misses an event", control=event.control)

    def _check_control(self, control: str) -> None:
        if control not in self.attributes.controls:
            raise MachineError(
                f"{self.name} has no control {control!r}",
                kind=ErrorKind.INVALID,
                remedy=f"use one of {', '.join(self.attributes.controls)}",
            )


def _now() -> datetime:
    return datetime.now(UTC)

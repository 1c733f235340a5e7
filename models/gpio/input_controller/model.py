"""Input controller `gpio`: buttons and toggle switches on pins of a board."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import ClassVar

import trio

from engine import Attributes, Board, Event, Extra, InputController, Started, Subscription, Tick, model
from models.common.listeners import Listeners
from models.common.ticks import following
from models.gpio.input_controller.attributes import Contact, GpioInputControllerConfig
from schema import ErrorKind, MachineError


class _State:
    """The state of one contact."""

    def __init__(self, contact: Contact, events: tuple[str, str], level: bool) -> None:
        self.contact = contact
        self.events = events  # for 0 and for 1
        self.raw = self.level = level  # current level of the pin, and debounced level
        self.edge = trio.Event()

    @property
    def value(self) -> float:
        """The value for users: 0 or 1."""
        return float(self.level is not self.contact.invert)


@model("rdk:builtin:gpio")
class GpioInputController(InputController):
    """A change is reported when the level has been stable for `debounce_msec`."""

    Config: ClassVar[type[Attributes]] = GpioInputControllerConfig

    async def run(self, *, task_status: Started) -> None:
        """Reserve the pins and publish changes until cancelled. Every control starts with a Connect event."""
        config: GpioInputControllerConfig = self.attributes
        board = self.dependency(Board, config.board)
        pins = [*config.buttons, *config.toggles]
        self._listeners = Listeners()
        self._states: dict[str, _State] = {}
        with self.reserve(*(board.identify(pin) for pin in pins)):
            for pin in pins:
                events = ("ButtonRelease", "ButtonPress") if pin in config.buttons else ("PositionChangeAbs",) * 2
                contact = config.buttons.get(pin) or config.toggles[pin]
                state = self._states[pin] = _State(contact, events, await board.get_gpio(pin))
                self._listeners.publish(Event(_now(), "Connect", contact.control, state.value))
            async with following(board, pins, self._on_tick), trio.open_nursery() as nursery:
                for state in self._states.values():
                    nursery.start_soon(self._debounce, state)
                task_status.started()

    def _on_tick(self, tick: Tick) -> None:
        state = self._states[tick.pin_name]
        state.raw = tick.high
        if state.contact.debounce_msec > 0:
            state.edge.set()
        else:
            self._accept_level(state)

    async def _debounce(self, state: _State) -> None:
        """Accept levels that have been stable."""
        while True:
            await state.edge.wait()
            while state.edge.is_set():
                state.edge = trio.Event()
                with trio.move_on_after(state.contact.debounce_msec / 1000):
                    await state.edge.wait()
            self._accept_level(state)

    def _accept_level(self, state: _State) -> None:
        if state.raw is not state.level:
            state.level = state.raw
            self._listeners.publish(Event(_now(), state.events[int(state.value)], state.contact.control, state.value))

    async def get_controls(self, *, extra: Extra = None) -> Sequence[str]:
        """Return the configured controls."""
        await trio.lowlevel.checkpoint()
        return [state.contact.control for state in self._states.values()]

    async def get_events(self, *, extra: Extra = None) -> Sequence[Event]:
        """Return the last event of each control."""
        await trio.lowlevel.checkpoint()
        return list(self._listeners.last.values())

    def stream_events(self, events: Sequence[Subscription], *, extra: Extra = None) -> AsyncGenerator[Event, None]:
        """Stream new events. INVALID for an unknown control."""
        for subscription in events:
            self._check_control(subscription.control)
        return self._listeners.stream(events)

    async def trigger_event(self, event: Event, *, extra: Extra = None) -> None:
        """Send an event to the listeners without changing the contact."""
        self._check_control(event.control)
        await trio.lowlevel.checkpoint()
        self._listeners.publish(Event(event.time or _now(), event.event, event.control, event.value))

    def _check_control(self, control: str) -> None:
        controls = [state.contact.control for state in self._states.values()]
        if control not in controls:
            raise MachineError(
                f"{self.name} has no control {control!r}",
                kind=ErrorKind.INVALID,
                remedy=f"use one of {', '.join(controls)}",
            )


def _now() -> datetime:
    return datetime.now(UTC)

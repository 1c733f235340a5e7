"""Input controller `gpio`: buttons and toggles wired to the pins of a board."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import ClassVar

import trio

from catalogue.gpio.input_controller import Contact, GpioInputControllerConfig
from runtime.builtin.devices.listeners import Listeners
from runtime.builtin.gpio.ticks import following
from runtime.components.board import Board, Tick
from runtime.components.input_controller import Event, InputController, Subscription
from runtime.resource import Attributes, Extra, Started
from schema.errors import ErrorKind, MachineError


class _State:
    """What is known of one contact."""

    def __init__(self, contact: Contact, events: tuple[str, str], level: bool) -> None:
        self.contact = contact
        self.events = events  # for 0 and for 1
        self.raw = self.level = level  # as the pin says now, and as it is believed
        self.edge = trio.Event()

    @property
    def value(self) -> float:
        """0 or 1, as users see it."""
        return float(self.level is not self.contact.invert)


class GpioInputController(InputController):
    """A change is believed, and told, when the level has lasted for `debounce_msec`."""

    Config: ClassVar[type[Attributes]] = GpioInputControllerConfig

    async def run(self, *, task_status: Started) -> None:
        """Own the pins and follow them. Every control begins with Connect and its present value."""
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
            async with following(board, pins, self._hear), trio.open_nursery() as nursery:
                for state in self._states.values():
                    nursery.start_soon(self._settle, state)
                task_status.started()

    def _hear(self, tick: Tick) -> None:
        state = self._states[tick.pin_name]
        state.raw = tick.high
        if state.contact.debounce_msec > 0:
            state.edge.set()
        else:
            self._believe(state)

    async def _settle(self, state: _State) -> None:
        """Believe a level that has lasted."""
        while True:
            await state.edge.wait()
            while state.edge.is_set():
                state.edge = trio.Event()
                with trio.move_on_after(state.contact.debounce_msec / 1000):
                    await state.edge.wait()
            self._believe(state)

    def _believe(self, state: _State) -> None:
        if state.raw is not state.level:
            state.level = state.raw
            self._listeners.publish(Event(_now(), state.events[int(state.value)], state.contact.control, state.value))

    async def get_controls(self, *, extra: Extra = None) -> Sequence[str]:
        """As configured."""
        await trio.lowlevel.checkpoint()
        return [state.contact.control for state in self._states.values()]

    async def get_events(self, *, extra: Extra = None) -> Sequence[Event]:
        """The last event of each control."""
        await trio.lowlevel.checkpoint()
        return list(self._listeners.last.values())

    def stream_events(self, events: Sequence[Subscription], *, extra: Extra = None) -> AsyncGenerator[Event, None]:
        """Events as they come, from now on."""
        for subscription in events:
            self._check(subscription.control)
        return self._listeners.stream(events)

    async def trigger_event(self, event: Event, *, extra: Extra = None) -> None:
        """Listeners hear it; the contact itself is not changed by it."""
        self._check(event.control)
        await trio.lowlevel.checkpoint()
        self._listeners.publish(Event(event.time or _now(), event.event, event.control, event.value))

    def _check(self, control: str) -> None:
        known = [state.contact.control for state in self._states.values()]
        if control not in known:
            raise MachineError(
                f"{self.name} has no control {control!r}",
                kind=ErrorKind.INVALID,
                remedy=f"use one of {', '.join(known)}",
            )


def _now() -> datetime:
    return datetime.now(UTC)

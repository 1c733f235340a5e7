"""Who listens to an input controller: each at its own speed, none misses how the controls are at last."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import Final

import trio

from runtime.builtin.fake.input_controller import wanted
from runtime.components.input_controller import Event, Subscription

BUFFER: Final = 256  # events kept for a slow listener


class _Listener:
    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        self.subscriptions = tuple(subscriptions)
        self.events: deque[Event] = deque()
        self.behind = False
        self.arrival = trio.Event()


class Listeners:
    """The last event of every control, and the streams of those who want to hear the next ones.

    A listener that is more than 256 events behind gets the last event of each control instead of what it missed.
    """

    def __init__(self) -> None:
        self.last: dict[str, Event] = {}
        self._listeners: set[_Listener] = set()

    def publish(self, event: Event) -> None:
        """Tell everybody who wants it."""
        self.last[event.control] = event
        for listener in self._listeners:
            if wanted(event, listener.subscriptions):
                if len(listener.events) >= BUFFER:
                    listener.events.clear()
                    listener.behind = True
                if not listener.behind:
                    listener.events.append(event)
                listener.arrival.set()

    async def stream(self, subscriptions: Sequence[Subscription]) -> AsyncGenerator[Event, None]:
        """The events that were asked for, as they come."""
        listener = _Listener(subscriptions)
        self._listeners.add(listener)
        try:
            while True:
                if listener.behind:
                    listener.behind = False
                    listener.events.extend(self.last.values())
                while listener.events:
                    yield listener.events.popleft()
                if not listener.behind:
                    listener.arrival = trio.Event()
                    await listener.arrival.wait()
        finally:
            self._listeners.discard(listener)

"""The listeners of an input controller. Slow listeners always receive the final state of the controls."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import Final

import trio

from engine import Event, Subscription

CHANGES: Final = ("ButtonPress", "ButtonRelease")
BUFFER: Final = 256  # events buffered for a slow listener


def is_subscribed(event: Event, subscriptions: Sequence[Subscription]) -> bool:
    """Return whether a listener subscribed to the event; subscriptions of a control apply in order."""
    chosen: set[str] = set()
    for subscription in subscriptions:
        if subscription.control == event.control:
            chosen |= set(subscription.events)
            chosen -= set(subscription.cancelled_events)
    return bool(chosen & {event.event, "AllEvents"} or (event.event in CHANGES and "ButtonChange" in chosen))


class _Listener:
    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        self.subscriptions = tuple(subscriptions)
        self.events: deque[Event] = deque()
        self.behind = False
        self.arrival = trio.Event()


class Listeners:
    """The last event of every control, and streams of new events.

    A listener that is more than 256 events behind receives the last event of each control instead of those it missed.
    """

    def __init__(self) -> None:
        self.last: dict[str, Event] = {}
        self._listeners: set[_Listener] = set()

    def publish(self, event: Event) -> None:
        """Send an event to the listeners that subscribed to it."""
        self.last[event.control] = event
        for listener in self._listeners:
            if is_subscribed(event, listener.subscriptions):
                if len(listener.events) >= BUFFER:
                    listener.events.clear()
                    listener.behind = True
                if not listener.behind:
                    listener.events.append(event)
                listener.arrival.set()

    async def stream(self, subscriptions: Sequence[Subscription]) -> AsyncGenerator[Event, None]:
        """Stream the subscribed events."""
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

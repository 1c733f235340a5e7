"""Events with topics and subjects. A listener never misses that a subject had an event since it last read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, TypeAlias, TypeVar

import trio

EVERY: Final = ""
"""Subject that stands for all subjects of a topic."""

Pair: TypeAlias = tuple[str, str]
"""A topic and a subject."""

Self = TypeVar("Self", bound="Subscription")


class Subscription:
    """Receives the events of its pairs of topic and subject, while the context is open.

    Thousands of machines have several each, so it has no more state than that.
    """

    __slots__ = ("_events", "_pairs")

    def __init__(self, events: Events, *pairs: Pair) -> None:
        self._events = events
        self._pairs = pairs

    def __enter__(self: Self) -> Self:
        self._events.add(self, self._pairs)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._events.remove(self, self._pairs)

    def notify(self, subject: str) -> None:
        """Handle an event for `subject`; EVERY if the subject is not known. Must not block."""
        raise NotImplementedError


class _Callback(Subscription):
    """Calls a function with the subject of each event."""

    __slots__ = ("_heard",)

    def __init__(self, events: Events, heard: Callable[[str], None], *pairs: Pair) -> None:
        super().__init__(events, *pairs)
        self._heard = heard

    def notify(self, subject: str) -> None:
        self._heard(subject)


class Listener(Subscription):
    """Receives events of its topics. Unread events are kept, each subject once. One task at a time may wait."""

    __slots__ = ("_unread", "_waiter")

    def __init__(self, events: Events, *pairs: Pair) -> None:
        super().__init__(events, *pairs)
        self._unread: dict[str, None] = {}
        self._waiter: trio.lowlevel.Task | None = None

    def notify(self, subject: str) -> None:
        """Add an event for `subject`; EVERY if the subject is not known."""
        self._unread[subject] = None
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            trio.lowlevel.reschedule(waiter)

    async def next(self) -> str:
        """Return the oldest unread subject; wait if there is none."""
        while not self._unread:
            await self._wait()
        subject = next(iter(self._unread))
        del self._unread[subject]
        return subject

    async def all(self) -> list[str]:
        """Return all unread subjects, oldest first; wait if there are none."""
        while not self._unread:
            await self._wait()
        subjects = list(self._unread)
        self._unread.clear()
        return subjects

    async def _wait(self) -> None:
        if self._waiter is not None:
            raise trio.BusyResourceError("another task already waits for these events")
        self._waiter = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self._waiter = None
        return trio.lowlevel.Abort.SUCCEEDED


class Events:
    """The listeners in one process."""

    def __init__(self) -> None:
        # by topic and by the subject that they listen to: thousands of machines wait for offers, each for its own
        self._listeners: dict[str, dict[str, set[Subscription]]] = {}

    def listening(self, topic: str, subject: str = EVERY, *, also: Sequence[str] = ()) -> Listener:
        """Return a listener to `subject` in `topic`, and in the topics `also`, for use as a context."""
        return Listener(self, *((name, subject) for name in (topic, *also)))

    def calling(self, heard: Callable[[str], None], *pairs: Pair) -> Subscription:
        """Return a context in which `heard` is called with the subject of each event of these topics and subjects.

        It must be fast and must not raise: thousands of machines may be called for one event. Events before the context
        are not seen, as with `listening`.
        """
        return _Callback(self, heard, *pairs)

    def add(self, subscription: Subscription, pairs: Sequence[Pair]) -> None:
        """Notify a subscription of these events until `remove`."""
        for topic, subject in pairs:
            self._listeners.setdefault(topic, {}).setdefault(subject, set()).add(subscription)

    def remove(self, subscription: Subscription, pairs: Sequence[Pair]) -> None:
        """Notify a subscription no longer."""
        for topic, subject in pairs:
            subjects = self._listeners[topic]
            subjects[subject].discard(subscription)
            if not subjects[subject]:
                del subjects[subject]

    def notify(self, topic: str, subject: str) -> None:
        """Notify all listeners of a subject; does not block."""
        subjects = self._listeners.get(topic, {})
        for listened in tuple(subjects) if subject == EVERY else (subject, EVERY):
            for listener in tuple(subjects.get(listened, ())):
                listener.notify(subject)

    def notify_all(self) -> None:
        """Notify all listeners with EVERY, because any subject may have changed."""
        for topic in tuple(self._listeners):
            self.notify(topic, EVERY)

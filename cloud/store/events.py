"""Events with topics and subjects. A listener never misses that a subject had an event since it last read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import trio

EVERY: Final = ""
"""Subject that stands for all subjects of a topic."""


class Listener:
    """Receives events of one topic. Unread events are kept, each subject once."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._unread: dict[str, None] = {}
        self._arrived = trio.Event()

    def notify(self, subject: str) -> None:
        """Add an event for `subject`; EVERY if the subject is not known."""
        if self._subject in (EVERY, subject) or subject == EVERY:
            self._unread[subject] = None
            self._arrived.set()

    async def next(self) -> str:
        """Return the oldest unread subject; wait if there is none."""
        while not self._unread:
            await self._arrived.wait()
        subject = next(iter(self._unread))
        del self._unread[subject]
        if not self._unread:
            self._arrived = trio.Event()
        return subject

    async def all(self) -> list[str]:
        """Return all unread subjects, oldest first; wait if there are none."""
        first = await self.next()
        further, self._unread = list(self._unread), {}
        self._arrived = trio.Event()
        return [first, *further]


class _Call:
    """Calls a function for each event."""

    def __init__(self, function: Callable[[str], None]) -> None:
        self.notify = function


class Events:
    """The listeners in one process."""

    def __init__(self) -> None:
        # by topic and by the subject that they listen to: thousands of machines wait for offers, each for its own
        self._listeners: dict[str, dict[str, set[Listener | _Call]]] = {}

    @contextmanager
    def listening(self, topic: str, subject: str = EVERY, *, also: Sequence[str] = ()) -> Iterator[Listener]:
        """Listen to `subject` in `topic`, and in the topics `also`, while the context is open."""
        listener = Listener(subject)
        with self._registered(listener, (topic, *also), subject):
            yield listener

    @contextmanager
    def calling(self, function: Callable[[str], None], topic: str, subject: str = EVERY) -> Iterator[None]:
        """Call a function with the subject of each event of `subject` in `topic`, while the context is open.

        It must be fast and must not raise: thousands of machines may be called for one event. Events before the context
        are not seen, as with `listening`.
        """
        with self._registered(_Call(function), (topic,), subject):
            yield

    @contextmanager
    def _registered(self, listener: Listener | _Call, topics: Sequence[str], subject: str) -> Iterator[None]:
        by_subject = [self._listeners.setdefault(name, {}) for name in topics]
        for subjects in by_subject:
            subjects.setdefault(subject, set()).add(listener)
        try:
            yield
        finally:
            for subjects in by_subject:
                subjects[subject].discard(listener)
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

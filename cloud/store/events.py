"""What happened, told to those who wait for it: topics with subjects, lossless for the last of each subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import trio

EVERY: Final = ""
"""A subject that stands for all of its topic."""


class Listener:
    """Hears of one topic. What happens while it is busy is remembered, each subject once."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._news: dict[str, None] = {}
        self._heard = trio.Event()

    def tell(self, subject: str) -> None:
        """Something happened to `subject`; EVERY if it is not known to what."""
        if self._subject in (EVERY, subject) or subject == EVERY:
            self._news[subject] = None
            self._heard.set()

    async def next(self) -> str:
        """The subject that was told first of those not read yet; waits for one."""
        while not self._news:
            await self._heard.wait()
        subject = next(iter(self._news))
        del self._news[subject]
        if not self._news:
            self._heard = trio.Event()
        return subject

    async def all(self) -> list[str]:
        """Every subject not read yet, in the order in which they were first told; waits for one."""
        first = await self.next()
        rest, self._news = list(self._news), {}
        self._heard = trio.Event()
        return [first, *rest]


class Events:
    """The listeners of one process."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = {}

    @contextmanager
    def listening(self, topic: str, subject: str = EVERY, *, also: Sequence[str] = ()) -> Iterator[Listener]:
        """Hear of `subject` from now on, until the context is left; `also` are further topics."""
        listener = Listener(subject)
        heard = [self._listeners.setdefault(one, set()) for one in (topic, *also)]
        for listeners in heard:
            listeners.add(listener)
        try:
            yield listener
        finally:
            for listeners in heard:
                listeners.discard(listener)

    def tell(self, topic: str, subject: str) -> None:
        """Tell everybody who listens; returns at once."""
        for listener in tuple(self._listeners.get(topic, ())):
            listener.tell(subject)

    def tell_all(self) -> None:
        """Something may have happened to everything: every listener is told EVERY."""
        for topic in tuple(self._listeners):
            self.tell(topic, EVERY)

"""Turns for work that takes a while, so that one organization cannot take them all."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import trio

from cloud.limits import Limit

T = TypeVar("T")

REMEMBERED: Final = 1000  # organizations of which nothing waits
RECENT: Final = 256  # slots taken last: an organization that took one of them counts as active


class Line(Generic[T]):
    """What waits, by organization: `take` goes round the organizations.

    Every organization counts its turns, and one that begins to wait starts at the count of the last one served: it
    comes before the next turn of all that were served since, however much of theirs waits.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        self._turn: dict[str, int] = {}  # of an organization's next, of those that wait or were served lately
        self._now = 0  # the turn of what was taken last

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def count(self, organization: str) -> int:
        """How much of an organization waits."""
        return len(self._waiting.get(organization, ()))

    def put(self, organization: str, item: T) -> None:
        """Let `item` wait, behind what waits of the same organization."""
        if organization not in self._waiting:
            self._waiting[organization] = deque()
            self._turn[organization] = max(self._now, self._turn.get(organization, 0))
        self._waiting[organization].append(item)

    def take(self, may: Callable[[str], bool] = lambda _: True) -> tuple[str, T] | None:
        """The next item with its organization, of those that `may` have one; None if there is none."""
        organization = min(filter(may, self._waiting), key=self._turn.__getitem__, default=None)
        if organization is None:
            return None
        item = self._waiting[organization].popleft()
        self._now = max(self._now, self._turn[organization])
        self._turn[organization] += 1
        self._forget(organization)
        return organization, item

    def remove(self, organization: str, item: T) -> bool:
        """Give up an item; whether it still waited."""
        if item not in self._waiting.get(organization, ()):
            return False
        self._waiting[organization].remove(item)
        self._forget(organization)
        return True

    def _forget(self, organization: str) -> None:
        if not self._waiting[organization]:
            del self._waiting[organization]
            if len(self._turn) - len(self._waiting) > REMEMBERED:
                self._turn = {one: self._turn[one] for one in self._waiting}


@dataclass(eq=False, slots=True)
class _Place:
    """A task that waits for a slot; `number` is the slot that it has."""

    granted: trio.Event = field(default_factory=trio.Event)
    number: int | None = None


class Slots:
    """At most `total` at once, at most `each` of one organization, and at most `queue` of it waiting.

    While several organizations are active, at most `shared` of one. Slots have numbers from 0. Organizations that wait
    take turns. The organization "" is the cloud itself: it does not count as another one.
    """

    def __init__(self, total: int, each: int, queue: Limit | None = None, *, shared: int | None = None) -> None:
        self._idle = list(reversed(range(total)))
        self._each: Final = each
        self._shared: Final = each if shared is None else shared
        self._recent: deque[str] = deque()  # who took the last slots
        self._active: Counter[str] = Counter()  # how often each of them
        self._queue: Final = queue
        self._busy: Counter[str] = Counter()
        self._line: Line[_Place] = Line()

    async def take(self, organization: str) -> int:
        """Wait for a slot and return its number. EXHAUSTED at once if too many of the organization wait already.

        Not a checkpoint, except for cancellation, if a slot is free.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        place = _Place()
        if self._queue is not None:
            self._queue.check_count(self._line.count(organization), "the organization")
        self._line.put(organization, place)
        self._grant()
        if not place.granted.is_set():  # waiting all the same would cost a round of the event loop
            try:
                await place.granted.wait()
            except trio.Cancelled:
                if place.number is None:
                    self._line.remove(organization, place)
                else:
                    self.give_back(organization, place.number)
                raise
        assert place.number is not None
        return place.number

    def give_back(self, organization: str, number: int) -> None:
        """Let the slot go to who waits."""
        self._idle.append(number)
        self._busy[organization] -= 1
        if not self._busy[organization]:
            del self._busy[organization]
        self._grant()

    @asynccontextmanager
    async def one(self, organization: str) -> AsyncIterator[int]:
        """A slot while the context is open, as `take`."""
        number = await self.take(organization)
        try:
            yield number
        finally:
            self.give_back(organization, number)

    def _may(self, organization: str) -> bool:
        others = len(self._active) - (organization in self._active)
        return self._busy[organization] < (self._shared if others else self._each)

    def _note(self, organization: str) -> None:
        if not organization or self._shared == self._each:
            return
        self._recent.append(organization)
        self._active[organization] += 1
        if len(self._recent) > RECENT:
            oldest = self._recent.popleft()
            self._active[oldest] -= 1
            if not self._active[oldest]:
                del self._active[oldest]

    def _grant(self) -> None:
        while self._idle and (taken := self._line.take(self._may)) is not None:
            organization, place = taken
            self._note(organization)
            self._busy[organization] += 1
            place.number = self._idle.pop()
            place.granted.set()

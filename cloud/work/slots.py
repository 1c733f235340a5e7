"""Slots for longer work, so that one organization cannot take them all."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import trio

from cloud.values.limits import Limit

T = TypeVar("T")

REMEMBERED: Final = 1000  # organizations without waiting items
RECENT: Final = 256  # number of last slots; an organization that took one of them is active


class WaitingLine(Generic[T]):
    """Queues of organizations; `take` goes round the organizations.

    Each organization has a turn number, which increases with each item taken. An organization that begins to wait
    continues at the turn number of the last item taken, so it comes before the next turn of all organizations that were
    served since, however many items they have.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        self._turn: dict[str, int] = {}  # turn of the next item; for waiting and recently served organizations
        self._now = 0  # turn number of the last item taken

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def count(self, organization: str) -> int:
        """Return the number of waiting items of an organization."""
        return len(self._waiting.get(organization, ()))

    def put(self, organization: str, item: T) -> None:
        """Add `item` at the end of the organization's queue."""
        if organization not in self._waiting:
            self._waiting[organization] = deque()
            self._turn[organization] = max(self._now, self._turn.get(organization, 0))
        self._waiting[organization].append(item)

    def take(self, may: Callable[[str], bool] = lambda _: True) -> tuple[str, T] | None:
        """Return the next item and its organization, of those for which `may` is true; None if there is none."""
        organization = min(filter(may, self._waiting), key=self._turn.__getitem__, default=None)
        if organization is None:
            return None
        item = self._waiting[organization].popleft()
        self._now = max(self._now, self._turn[organization])
        self._turn[organization] += 1
        self._forget(organization)
        return organization, item

    def remove(self, organization: str, item: T) -> bool:
        """Remove an item; return whether it was still waiting."""
        if item not in self._waiting.get(organization, ()):
            return False
        self._waiting[organization].remove(item)
        self._forget(organization)
        return True

    def _forget(self, organization: str) -> None:
        if not self._waiting[organization]:
            del self._waiting[organization]
            if len(self._turn) - len(self._waiting) > REMEMBERED:
                self._turn = {organization: self._turn[organization] for organization in self._waiting}


@dataclass(eq=False, slots=True)
class _Waiter:
    """A task that waits for a slot; `number` is its slot, once granted."""

    granted: trio.Event = field(default_factory=trio.Event)
    number: int | None = None


class Slots:
    """Slots: at most `total` in use, at most `each` by one organization, of which at most `queue` tasks wait.

    While several organizations are active, one of them can use at most `shared`. Slots are numbered from 0. Waiting
    organizations take turns. The organization "" is the cloud itself: it does not count as another organization.
    """

    def __init__(self, total: int, each: int, queue: Limit | None = None, *, shared: int | None = None) -> None:
        self._idle = list(reversed(range(total)))
        self._each: Final = each
        self._shared: Final = shared
        self._recent: deque[str] = deque()  # the organizations that took the last slots
        self._active: Counter[str] = Counter()  # number of slots in `_recent`, by organization
        self._queue: Final = queue
        self._busy: Counter[str] = Counter()
        self._line: WaitingLine[_Waiter] = WaitingLine()

    async def take(self, organization: str) -> int:
        """Wait for a slot and return its number. EXHAUSTED at once if too many tasks of the organization wait.

        If a slot is free, this is not a checkpoint, except for cancellation.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        waiter = _Waiter()
        if self._queue is not None:
            self._queue.check_count(self._line.count(organization), "the organization")
        self._line.put(organization, waiter)
        self._grant()
        if not waiter.granted.is_set():  # waiting for a set event would cost a round of the event loop
            try:
                await waiter.granted.wait()
            except trio.Cancelled:
                if waiter.number is None:
                    self._line.remove(organization, waiter)
                else:
                    self.give_back(organization, waiter.number)
                raise
        assert waiter.number is not None
        return waiter.number

    def give_back(self, organization: str, number: int, *, resting: bool = False) -> None:
        """Release a slot. With `resting`, it still counts as one of the organization's until `end_rest`."""
        self._idle.append(number)
        if resting:
            self._grant()
        else:
            self.end_rest(organization)

    def end_rest(self, organization: str) -> None:
        """Stop counting a slot that was released with `resting`."""
        self._busy[organization] -= 1
        if not self._busy[organization]:
            del self._busy[organization]
        self._grant()

    def shares(self, organization: str) -> bool:
        """Return whether another organization has taken one of the last slots. Always False without `shared`."""
        return len(self._active) > (organization in self._active)

    @asynccontextmanager
    async def hold(self, organization: str) -> AsyncIterator[int]:
        """Hold a slot while the context is open; see `take`."""
        number = await self.take(organization)
        try:
            yield number
        finally:
            self.give_back(organization, number)

    def _may(self, organization: str) -> bool:
        limit = self._each if self._shared is None or not self.shares(organization) else self._shared
        return self._busy[organization] < limit

    def _note(self, organization: str) -> None:
        if not organization or self._shared is None:
            return
        self._recent.append(organization)
        self._active[organization] += 1
        if len(self._recent) > RECENT:
            oldest = self._recent.popleft()
            self._active[oldest] -= 1
            if not self._active[oldest]:
                del self._active[oldest]

    def _grant(self) -> None:
        while self._idle and (item := self._line.take(self._may)) is not None:
            organization, waiter = item
            self._note(organization)
            self._busy[organization] += 1
            waiter.number = self._idle.pop()
            waiter.granted.set()

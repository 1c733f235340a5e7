"""Observation of a graph: snapshots on request, a stream of the latest snapshot, and callbacks for each transition."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

import trio

from nursery_graph.lifecycle import State
from nursery_graph.status import NodeStatus, Snapshot, Transition

_log = logging.getLogger("nursery_graph")


class Observed(Protocol):
    """An object whose status is computed on request."""

    name: str

    def status(self) -> NodeStatus:
        """Return the current status."""
        ...


class Board:
    """Distributes changes to observers. Without observers, announcing costs an increment and two tests."""

    def __init__(self, observed: Mapping[str, Observed]) -> None:
        self._observed = observed
        self._callbacks: dict[object, Callable[[Transition], None]] = {}
        self._readers = trio.lowlevel.ParkingLot()
        self._latest: Snapshot | None = None
        self.sequence = 0
        self.closed = False

    def announce(self, name: str, before: State | None, after: State | None, reason: str) -> None:
        """Record a transition and call the subscribed callbacks."""
        self.touch()
        if self._callbacks:
            transition = Transition(name, before, after, reason, trio.current_time())
            for callback in tuple(self._callbacks.values()):
                try:
                    callback(transition)
                except Exception:
                    _log.exception("an observer failed on %s; it stays subscribed", transition)

    def touch(self) -> None:
        """Invalidate the snapshot and wake its readers."""
        self.sequence += 1
        if self._readers:
            self._readers.unpark_all()

    def close(self) -> None:
        """Record that there will be no further changes."""
        self.closed = True
        self.touch()

    def subscribe(self, callback: Callable[[Transition], None]) -> Callable[[], None]:
        """Call `callback` with each transition from now on, in order, until the returned function is called."""
        key = object()
        self._callbacks[key] = callback
        return lambda: self._callbacks.pop(key, None) and None

    def snapshot(self) -> Snapshot:
        """Return the current status of all nodes; rebuilt only after a change."""
        if self._latest is None or self._latest.sequence != self.sequence:
            nodes = {name: observed.status() for name, observed in self._observed.items()}
            self._latest = Snapshot(trio.current_time(), self.sequence, MappingProxyType(nodes))
        return self._latest

    async def newer_than(self, sequence: int) -> None:
        """Wait until something has changed since `sequence` or the board is closed."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while self.sequence == sequence and not self.closed:
            await self._readers.park()
        await trio.lowlevel.cancel_shielded_checkpoint()


class Changes:
    """An iterator over snapshots: the present one at once, then the newest after each change, until the graph ends.

    A slow reader skips intermediate snapshots but never misses the last one. The iterator needs no closing.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._seen = -1

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Snapshot:
        await self._board.newer_than(self._seen)
        if self._board.closed and self._seen == self._board.sequence:
            raise StopAsyncIteration
        snapshot = self._board.snapshot()
        self._seen = snapshot.sequence
        return snapshot

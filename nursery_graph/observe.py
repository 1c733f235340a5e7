"""Telling observers: a snapshot when asked, the latest one as a stream, and every single transition."""

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
    """Something with a status that is built when somebody looks."""

    name: str

    def status(self) -> NodeStatus:
        """Its status now."""
        ...


class Board:
    """Where changes are announced. Without observers an announcement is an increment and two tests."""

    def __init__(self, observed: Mapping[str, Observed]) -> None:
        self._observed = observed
        self._callbacks: dict[object, Callable[[Transition], None]] = {}
        self._readers = trio.lowlevel.ParkingLot()
        self._latest: Snapshot | None = None
        self.sequence = 0
        self.closed = False

    def announce(self, name: str, before: State | None, after: State | None, reason: str) -> None:
        """A transition happened."""
        self.touch()
        if self._callbacks:
            transition = Transition(name, before, after, reason, trio.current_time())
            for callback in tuple(self._callbacks.values()):
                try:
                    callback(transition)
                except Exception:
                    _log.exception("an observer failed on %s; it stays subscribed", transition)

    def touch(self) -> None:
        """Something that a snapshot shows has changed."""
        self.sequence += 1
        if self._readers:
            self._readers.unpark_all()

    def close(self) -> None:
        """Nothing will change any more."""
        self.closed = True
        self.touch()

    def subscribe(self, callback: Callable[[Transition], None]) -> Callable[[], None]:
        """Call `callback` with each transition from now on, in order; the function returned ends that."""
        key = object()
        self._callbacks[key] = callback
        return lambda: self._callbacks.pop(key, None) and None

    def snapshot(self) -> Snapshot:
        """Everything at this moment; built anew only after a change."""
        if self._latest is None or self._latest.sequence != self.sequence:
            nodes = {name: observed.status() for name, observed in self._observed.items()}
            self._latest = Snapshot(trio.current_time(), self.sequence, MappingProxyType(nodes))
        return self._latest

    async def newer_than(self, sequence: int) -> None:
        """Return once something has changed since `sequence`, or nothing can change any more."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while self.sequence == sequence and not self.closed:
            await self._readers.park()
        await trio.lowlevel.cancel_shielded_checkpoint()


class Changes:
    """Snapshots: the present one at once, then the newest after each change, until the graph has ended.

    A slow reader skips intermediate snapshots; the last one is never lost. Nothing has to be closed.
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

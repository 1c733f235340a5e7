"""Things held open by a task of their own, so that whoever asked for them may be cancelled or gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class Held(Generic[T]):
    """A value whose context is open in some task."""

    def __init__(self, value: T, scope: trio.CancelScope, closed: trio.Event) -> None:
        self.value = value
        self._scope = scope
        self._closed = closed

    def cancel(self) -> None:
        """Leave its context soon."""
        self._scope.cancel()

    async def close(self) -> None:
        """Leave its context, and wait until that is done. May be called again; goes on by itself when cancelled."""
        self.cancel()
        await self._closed.wait()


async def hold(
    nursery: trio.Nursery,
    manager: AbstractAsyncContextManager[T],
    body: Callable[[T], Awaitable[object]] | None = None,
) -> Held[T]:
    """Enter `manager` in a task of `nursery` and stay in it, running `body`, until closed or the nursery is cancelled.

    Errors of entering are raised here, later ones in the nursery. Cancelled, nothing stays open.
    """

    async def run(*, task_status: trio.TaskStatus[Held[T]]) -> None:
        closed = trio.Event()
        try:
            with trio.CancelScope() as scope:
                async with manager as value:
                    task_status.started(Held(value, scope, closed))
                    if body is not None:
                        await body(value)
                    await trio.sleep_forever()
        finally:
            closed.set()

    held: Held[T] = await nursery.start(run)
    return held

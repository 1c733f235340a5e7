"""Things held open by a task of their own, so that whoever asked for them may be cancelled or gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

import trio

from schema.errors import ErrorKind, MachineError

T = TypeVar("T")


class Held(Generic[T]):
    """A value whose context is open in some task."""

    def __init__(self, value: T, scope: trio.CancelScope, closed: trio.Event) -> None:
        self.open = True
        self._value = value
        self._scope = scope
        self._closed = closed

    @property
    def value(self) -> T:
        """What was opened. MachineError (UNAVAILABLE) once it is being closed, by whomever."""
        if not self.open:
            raise stopping()
        return self._value

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

    Errors of entering are raised here, later ones in the nursery. Cancelled, nothing stays open. MachineError
    (UNAVAILABLE) once the nursery is cancelled, because something else in it failed.
    """

    async def run(*, task_status: trio.TaskStatus[Held[T]]) -> None:
        closed = trio.Event()
        try:
            with trio.CancelScope() as scope:
                async with manager as value:
                    held = Held(value, scope, closed)
                    try:
                        task_status.started(held)
                        if body is not None:
                            await body(value)
                        await trio.sleep_forever()
                    finally:
                        held.open = False
        finally:
            closed.set()

    if nursery.cancel_scope.cancel_called:
        raise stopping()
    held: Held[T] = await nursery.start(run)
    return held


def stopping() -> MachineError:
    """What a call meets that comes while the owner of the lines ends."""
    return MachineError(
        "the board is stopping, or its chip is gone", kind=ErrorKind.UNAVAILABLE, remedy="try again later"
    )

"""Context managers that a task of their own keeps open, so that they survive the cancellation of the caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

import trio

from schema import ErrorKind, MachineError

T = TypeVar("T")


class Held(Generic[T]):
    """A value whose context is open in another task."""

    def __init__(self, value: T, scope: trio.CancelScope, closed: trio.Event) -> None:
        self.open = True
        self._value = value
        self._scope = scope
        self._closed = closed

    @property
    def value(self) -> T:
        """The opened value. MachineError (UNAVAILABLE) as soon as its context is being closed."""
        if not self.open:
            raise stopping_error()
        return self._value

    def cancel(self) -> None:
        """Start to close the context, without waiting."""
        self._scope.cancel()

    async def close(self) -> None:
        """Close the context and wait until it is closed. May be repeated. Cancellation ends only the wait."""
        self.cancel()
        await self._closed.wait()


async def hold(
    nursery: trio.Nursery,
    manager: AbstractAsyncContextManager[T],
    body: Callable[[T], Awaitable[object]] | None = None,
) -> Held[T]:
    """Enter `manager` in a task of `nursery` and run `body` inside, until closed or the nursery is cancelled.

    Errors on entry are raised here, later errors in the nursery. If the call is cancelled, nothing stays open.
    MachineError (UNAVAILABLE) if the nursery is already cancelled.
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
        raise stopping_error()
    held: Held[T] = await nursery.start(run)
    return held


def stopping_error() -> MachineError:
    """Create the error for a call that arrives while the board is stopping."""
    return MachineError(
        "the board is stopping, or its GPIO chip has disappeared", kind=ErrorKind.UNAVAILABLE, remedy="try again later"
    )

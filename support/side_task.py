"""A background task of an async generator: its failure ends the next wait, and never cancels the consumer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

T = TypeVar("T")


class SideTask:
    """A running background task; made by `side_task`."""

    def __init__(self) -> None:
        self._failure: Exception | None = None
        self._waits: trio.CancelScope | None = None

    def fail(self, error: Exception) -> None:
        """Make `until` raise `error`, now or when it is next called; the first error counts."""
        if self._failure is None:
            self._failure = error
        if self._waits is not None:
            self._waits.cancel()

    async def until(self, function: Callable[[], Awaitable[T]]) -> T:
        """Return what `function` returns; raise the task's error, or that of `fail`, as soon as there is one."""
        if self._failure is None:
            with trio.CancelScope() as self._waits:
                return await function()
        assert self._failure is not None  # nothing else cancels the scope
        raise self._failure

    async def _run(self, task: Callable[[], Awaitable[None]]) -> None:
        try:
            await task()
        except Exception as error:
            self.fail(error)


@asynccontextmanager
async def side_task(
    task: Callable[[], Awaitable[None]], side: SideTask | None = None
) -> AsyncGenerator[SideTask, None]:
    """Run `task` until the block is left, then cancel it. Waits in the block go through `until` of the yielded object.

    An exception of the block leaves bare, without a group, so that a generator can be closed inside the block.
    """
    side = side or SideTask()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(side._run, task)
            try:
                yield side
            finally:
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        raise group.exceptions[0] from None

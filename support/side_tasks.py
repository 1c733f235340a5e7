"""A background task for async generators: its failure ends the current or next wait without cancelling the consumer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from support.concurrency import raised_alone

T = TypeVar("T")


class SideTask:
    """A running background task, created by `side_task`."""

    def __init__(self) -> None:
        self._failure: Exception | None = None
        self._waits: trio.CancelScope | None = None

    def fail(self, error: Exception) -> None:
        """Make the current or next call of `until` raise `error`. Only the first error counts."""
        if self._failure is None:
            self._failure = error
        if self._waits is not None:
            self._waits.cancel()

    async def until(self, function: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `function`; raise the error of the task, or that of `fail`, as soon as it occurs."""
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
    """Run `task` until the block is left, then cancel it. Code in the block must wait through `until` of the object.

    An exception in the block is raised without an exception group, so that a generator can be closed in the block.
    """
    side, own = side or SideTask(), None
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(side._run, task)
            try:
                yield side
            except BaseException as error:
                own = error
                raise
            finally:
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if own is not None and raised_alone(group, own):
            raise own from None
        if len(group.exceptions) != 1:
            raise
        raise group.exceptions[0] from None

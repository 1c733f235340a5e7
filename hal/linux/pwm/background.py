"""A background task that runs while a context is open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def background(task: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Run `task` while the context is open and cancel it on leaving.

    If the task fails, the body is cancelled. The error of the task or the body is raised without an exception group,
    unless both fail.
    """
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
            yield
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise

"""A task that lives as long as a context."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def background(task: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Run `task` while the context is open, and cancel it on leaving.

    If the task fails, the body is cancelled and the task's error is raised as it is, as is an error of the body; only
    if both fail they come as a group.
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

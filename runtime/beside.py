"""A task beside an async generator: its failure ends the generator's next wait, and never cancels whoever iterates."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

T = TypeVar("T")


class Beside:
    """Made by `beside`."""

    def __init__(self) -> None:
        self._failure: Exception | None = None
        self._waits: trio.CancelScope | None = None

    def fail(self, error: Exception) -> None:
        """Let `until` raise `error`, now or when it is next called; the first one counts."""
        if self._failure is None:
            self._failure = error
        if self._waits is not None:
            self._waits.cancel()

    async def until(self, function: Callable[[], Awaitable[T]]) -> T:
        """What `function` returns; raises what the task has raised, or was told to `fail`."""
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
async def beside(task: Callable[[], Awaitable[None]], found: Beside | None = None) -> AsyncGenerator[Beside, None]:
    """Run `task` until the block is left, then cancel it. Waits in the block go through `until` of what is given.

    What the block raises leaves bare, without a group: a generator that is closed in here stays one.
    """
    found = found or Beside()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(found._run, task)
            try:
                yield found
            finally:
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        raise group.exceptions[0] from None

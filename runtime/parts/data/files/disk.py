"""Executors for blocking work on files: a separate thread, so that a slow disk delays nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

import trio

T = TypeVar("T")


class Disk(Protocol):
    """Runs blocking functions one by one."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Run functions while the context is open. Leaving it waits for the current function."""

    async def run(self, function: Callable[[], T]) -> T:
        """Run `function` after earlier requests, and return or raise what it does.

        If this is cancelled while the function is running, it returns early, and the function still finishes.
        """

    def post(self, function: Callable[[], object]) -> None:
        """Schedule `function` after earlier requests, without waiting. Its exceptions are ignored."""


class ThreadDisk:
    """A Disk with a thread."""

    def __init__(self, name: str) -> None:
        from support import Worker

        self._worker = Worker(name)

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Run functions while the context is open. Raises MachineError (TIMEOUT) if a function hangs in the kernel."""
        return self._worker.opened()

    async def run(self, function: Callable[[], T]) -> T:
        """Run `function` after earlier requests, and return or raise what it does."""
        return await self._worker.run(function)

    def post(self, function: Callable[[], object]) -> None:
        """Schedule `function` after earlier requests, without waiting."""
        self._worker.post(function)


class InlineDisk:
    """A Disk without a thread, for tests with the virtual clock and for measurements."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Run functions while the context is open."""
        yield

    async def run(self, function: Callable[[], T]) -> T:
        """Run `function` after earlier requests, and return or raise what it does."""
        await trio.lowlevel.checkpoint()
        return function()

    def post(self, function: Callable[[], object]) -> None:
        """Schedule `function` after earlier requests, without waiting. The function runs immediately."""
        function()

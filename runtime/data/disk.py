"""Who does the blocking work on files: a thread of its own, so that a slow disk delays nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

import trio

T = TypeVar("T")


class Disk(Protocol):
    """Carries out blocking functions one after the other."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Work while the context is open; leaving waits for the function in progress."""

    async def run(self, function: Callable[[], T]) -> T:
        """Carry out `function` after what was asked for before; returns or raises what it does.

        Cancelled while it runs, the caller goes on and the function is finished all the same.
        """

    def post(self, function: Callable[[], object]) -> None:
        """Carry out `function` after what was asked for before, without waiting; what it raises is dropped."""


class ThreadDisk:
    """One thread for one capture folder."""

    def __init__(self, name: str) -> None:
        from support.worker import Worker

        self._worker = Worker(name)

    def opened(self) -> AbstractAsyncContextManager[None]:
        """As in Disk; MachineError (TIMEOUT) if a function hangs in the kernel."""
        return self._worker.opened()

    async def run(self, function: Callable[[], T]) -> T:
        """As in Disk."""
        return await self._worker.run(function)

    def post(self, function: Callable[[], object]) -> None:
        """As in Disk."""
        self._worker.post(function)


class InlineDisk:
    """Without a thread: for tests under the virtual clock and for measurements."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """As in Disk."""
        yield

    async def run(self, function: Callable[[], T]) -> T:
        """As in Disk."""
        await trio.lowlevel.checkpoint()
        return function()

    def post(self, function: Callable[[], object]) -> None:
        """As in Disk."""
        function()

"""The event loop on which aiortc runs, between Trio and asyncio."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import trio
import trio_asyncio

CLOSING_LIMIT: Final = 5.0  # seconds to close a connection, and all of them at the end of the engine

_log = logging.getLogger("rpc.peers")


@asynccontextmanager
async def open_loop() -> AsyncIterator[Loop]:
    """Run a loop until the block ends; then end its tasks, and close their sockets."""
    async with trio_asyncio.open_loop() as native:
        native.set_exception_handler(_log_failure)
        loop = Loop(native)
        try:
            yield loop
        finally:
            with trio.move_on_after(CLOSING_LIMIT, shield=True):
                await loop.close_sockets()


class Loop:
    """A loop, created by `open_loop`."""

    def __init__(self, native: Any) -> None:
        self._native = native

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let functions of aiortc that are called in the block find the loop, in any task."""
        token = trio_asyncio.current_loop.set(self._native)
        try:
            yield
        finally:
            trio_asyncio.current_loop.reset(token)

    async def run(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Run a coroutine function of aiortc; cancellation cancels it."""
        return await self._native.run_aio_coroutine(function(*arguments))

    @staticmethod
    async def wait(event: trio.Event) -> None:
        """Wait for an event in a coroutine of aiortc."""
        await trio_asyncio.trio_as_aio(event.wait)()

    async def close_sockets(self) -> None:
        """Close what is left of calls that were cancelled while they opened sockets; aiortc forgets those."""
        for transport in list(self._native._transports.values()):
            transport.abort()
        await self._native.synchronize()


def _log_failure(_loop: Any, context: dict[str, Any]) -> None:
    """Log an error in a callback or task of aiortc, which hostile peers can cause; it ends at most their connection."""
    _log.warning("aiortc: %s: %r", context.get("message"), context.get("exception"))

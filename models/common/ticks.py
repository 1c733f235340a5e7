"""Subscription to the edges of a board's pins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final

import trio

from engine import Board, Tick
from schema import ErrorKind, MachineError
from support import unwrap

START_ERROR_LIMIT: Final = 0.02  # seconds in which a board that refuses the pins raises its error


@asynccontextmanager
async def following(board: Board, pins: Sequence[str], on_tick: Callable[[Tick], None]) -> AsyncIterator[None]:
    """Call `on_tick` for each edge while the context is open. An error of the board is raised from the context."""
    ended = trio.Event()

    async def follow() -> None:
        try:
            async with aclosing(board.stream_ticks(pins)) as ticks:
                async for tick in ticks:
                    on_tick(tick)
            raise MachineError(f"{board.name} ended its stream of ticks", kind=ErrorKind.UNAVAILABLE)
        finally:
            ended.set()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            with trio.move_on_after(START_ERROR_LIMIT):
                await ended.wait()
                await trio.sleep_forever()  # until the error in `follow` cancels the nursery
            yield
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise unwrap(group) from None

"""What everything that moves shares: one motion at a time, coming to rest in bounded time, and checks of numbers."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio

from schema.errors import ErrorKind, MachineError

HALT_TIME: Final = 2.0  # seconds that bringing something to rest may take while its caller is being cancelled


class OneMotion:
    """At most one motion at a time: the newest command wins, and the overtaken one fails with CANCELLED."""

    def __init__(self) -> None:
        self._scope: trio.CancelScope | None = None
        self._left = trio.Event()
        self._newest = 0  # number of the newest command

    @property
    def running(self) -> bool:
        """Whether a motion is being waited for."""
        return self._scope is not None

    async def overtake(self) -> bool:
        """A new command has come: the old one ends, and has ended when this returns.

        False if a still newer one came meanwhile.
        """
        self._newest += 1
        number = self._newest
        while self._scope is not None:
            self._scope.cancel()
            await self._left.wait()
        return number == self._newest

    @asynccontextmanager
    async def begin(self, halt: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
        """Wait for a motion inside the context; leaving it by an error or a cancellation calls `halt` before."""
        if not await self.overtake():
            raise overtaken()
        with trio.CancelScope() as scope:
            self._scope, self._left = scope, trio.Event()
            arrived = False
            try:
                yield
                arrived = True
            finally:
                try:
                    if not arrived:
                        await at_rest(halt)
                finally:
                    self._scope = None
                    self._left.set()
        if scope.cancelled_caught:
            raise overtaken()


def overtaken() -> MachineError:
    """What a motion says that a newer command has ended."""
    return MachineError("another command took over", kind=ErrorKind.CANCELLED)


async def at_rest(halt: Callable[[], Awaitable[object]]) -> None:
    """Call `halt` whoever is being cancelled, for no longer than HALT_TIME."""
    with trio.move_on_after(HALT_TIME, shield=True):
        await halt()


@asynccontextmanager
async def or_else(halt: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """If the body fails or is cancelled, call `halt` before that goes on; what fails in it becomes a note."""
    try:
        yield
    except BaseException as error:
        try:
            await at_rest(halt)
        except Exception as further:
            error.add_note(str(further))
        raise


async def every(*calls: Callable[[], Awaitable[object]]) -> None:
    """Run the calls concurrently, each to its end whatever becomes of the others; then raise the first error, if any.

    For bringing things to rest: one that fails must not keep the others moving. Further errors are notes of the first.
    """
    errors: list[Exception] = []

    async def one(call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except Exception as error:
            errors.append(error)

    async with trio.open_nursery() as nursery:
        for call in calls:
            nursery.start_soon(one, call)
    if errors:
        for other in errors[1:]:
            errors[0].add_note(str(other))
        raise errors[0]


def finite(what: str, *values: float) -> None:
    """Refuse NaN and infinity by name."""
    for value in values:
        if not math.isfinite(value):
            raise MachineError(f"{what} is {value}", kind=ErrorKind.INVALID, remedy="give a finite number")

"""Shared by all models that move: one motion at a time, stopping in bounded time, and checks of numbers."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio

from schema import ErrorKind, MachineError

HALT_TIME: Final = 2.0  # limit in seconds for stopping during a cancellation


class ExclusiveMotion:
    """Allows one motion at a time. A new command ends the current one, which fails with CANCELLED."""

    def __init__(self) -> None:
        self._scope: trio.CancelScope | None = None
        self._ended = trio.Event()
        self._newest = 0  # number of the newest command

    @property
    def running(self) -> bool:
        """Whether a motion is in progress."""
        return self._scope is not None

    async def supersede(self) -> bool:
        """End the current motion for a new command, and wait until it has ended.

        Returns False if an even newer command has arrived in the meantime.
        """
        self._newest += 1
        number = self._newest
        while self._scope is not None:
            self._scope.cancel()
            await self._ended.wait()
        return number == self._newest

    @asynccontextmanager
    async def begin(self, halt: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
        """Run a motion inside the context, after ending the current one. An error or cancellation calls `halt`."""
        if not await self.supersede():
            raise superseded()
        with trio.CancelScope() as scope:
            self._scope, self._ended = scope, trio.Event()
            completed = False
            try:
                yield
                completed = True
            finally:
                try:
                    if not completed:
                        await run_shielded(halt)
                finally:
                    self._scope = None
                    self._ended.set()
        if scope.cancelled_caught:
            raise superseded()


def superseded() -> MachineError:
    """Create the error of a motion that a newer command has ended."""
    return MachineError("a newer command has replaced this one", kind=ErrorKind.CANCELLED)


async def run_shielded(halt: Callable[[], Awaitable[object]]) -> None:
    """Call `halt`, shielded from cancellation, for at most HALT_TIME."""
    with trio.move_on_after(HALT_TIME, shield=True):
        await halt()


@asynccontextmanager
async def halt_on_failure(halt: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Call `halt` if the body fails or is cancelled. An error in `halt` becomes a note of the original exception."""
    try:
        yield
    except BaseException as error:
        try:
            await run_shielded(halt)
        except Exception as halt_error:
            error.add_note(str(halt_error))
        raise


async def run_all(*calls: Callable[[], Awaitable[object]]) -> None:
    """Run all calls concurrently to their end, then raise the first error, if any.

    Used to stop things: an error in one call must not keep the others moving. Further errors are notes of the first.
    """
    errors: list[Exception] = []

    async def run_one(call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except Exception as error:
            errors.append(error)

    async with trio.open_nursery() as nursery:
        for call in calls:
            nursery.start_soon(run_one, call)
    if errors:
        for other in errors[1:]:
            errors[0].add_note(str(other))
        raise errors[0]


def check_finite(what: str, *values: float) -> None:
    """Raise INVALID if a value is NaN or infinite; `what` names the value."""
    for value in values:
        if not math.isfinite(value):
            raise MachineError(f"{what} is {value}", kind=ErrorKind.INVALID, remedy="use a finite number")


def check_move(name: object, distance: float, speed: float) -> None:
    """Raise INVALID for a distance or angle, or a speed, that is 0 or not finite."""
    check_finite("the distance or angle", distance)
    check_finite("the speed", speed)
    if not distance or not speed:
        raise MachineError(
            f"{name} cannot move by {distance:g} at a speed of {speed:g}",
            kind=ErrorKind.INVALID,
            remedy="call stop instead",
        )

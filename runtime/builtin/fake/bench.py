"""What the models on the simulated bench share: a place on it, injected faults, and one motion at a time."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

import trio

from runtime.resource import Resource
from schema.errors import ErrorKind, MachineError

HALT_TIME: Final = 2.0  # seconds that bringing something to rest may take while its caller is being cancelled


class OnBench(Resource):
    """A resource whose device is simulated."""

    async def access(self) -> float:
        """A checkpoint before each access to the device, where injected faults strike; returns the time."""
        await self.world.faults.strike(self.name.short)
        return self.world.now()


class OneMotion:
    """At most one motion at a time: the newest command wins, and the overtaken one fails with CANCELLED."""

    def __init__(self) -> None:
        self._scope: trio.CancelScope | None = None
        self._left = trio.Event()

    @property
    def running(self) -> bool:
        """Whether a motion is being waited for."""
        return self._scope is not None

    async def overtake(self) -> None:
        """A new command has come: the old one ends, and has ended when this returns."""
        while self._scope is not None:
            self._scope.cancel()
            await self._left.wait()

    @asynccontextmanager
    async def begin(self, halt: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
        """Wait for a motion inside the context; leaving it by an error or a cancellation calls `halt` before."""
        await self.overtake()
        with trio.CancelScope() as scope:
            self._scope, self._left = scope, trio.Event()
            arrived = False
            try:
                yield
                arrived = True
            finally:
                try:
                    if not arrived:
                        with trio.move_on_after(HALT_TIME, shield=True):
                            await halt()
                finally:
                    self._scope = None
                    self._left.set()
        if scope.cancelled_caught:
            raise MachineError("another command took over", kind=ErrorKind.CANCELLED)


def finite(what: str, *values: float) -> None:
    """Refuse NaN and infinity by name."""
    for value in values:
        if not math.isfinite(value):
            raise MachineError(f"{what} is {value}", kind=ErrorKind.INVALID, remedy="give a finite number")


def one_each(what: str, values: Iterable[float], count: int) -> list[float]:
    """The values as a list of `count` finite numbers, or an INVALID error."""
    numbers = list(values)
    finite(what, *numbers)
    if len(numbers) != count:
        raise MachineError(f"{len(numbers)} values of {what} for {count} axes", kind=ErrorKind.INVALID)
    return numbers

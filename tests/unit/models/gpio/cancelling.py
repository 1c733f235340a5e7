"""Cancel a call at each of its checkpoints in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import trio


class _Steps(trio.abc.Instrument):
    """Cancel `scope` at the n-th step of any task."""

    def __init__(self, scope: trio.CancelScope, at: int) -> None:
        self._scope = scope
        self._left = at

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._left -= 1
        if self._left == 0:
            self._scope.cancel()


async def cancelled_at_every_step(
    call: Callable[[], Awaitable[object]], before: Callable[[], Awaitable[object]], *, most: int = 10_000
) -> AsyncIterator[bool]:
    """Cancel the call at each of its steps in turn; yield after each attempt whether the call completed.

    The attempts end with the first one that is not cancelled, or after `most` attempts.
    """
    for at in range(1, most + 1):
        await before()
        with trio.CancelScope() as scope:
            instrument = _Steps(scope, at)
            trio.lowlevel.add_instrument(instrument)
            try:
                await call()
            finally:
                trio.lowlevel.remove_instrument(instrument)
        yield not scope.cancelled_caught
        if not scope.cancel_called:
            assert at > 3, "a call with so few steps was not looked at"
            return

"""Wait for what another process does, for which there is no event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

LIMIT = 60.0  # seconds, as starts and stops of a process have in `tests.e2e.harness`


async def until(condition: Callable[[], object | Awaitable[object]], explain: Callable[[], str] = str) -> None:
    """Wait until a condition is true of another process, which has no event for it; fail after LIMIT."""
    with trio.move_on_after(LIMIT):
        while True:
            result = condition()
            if await result if isinstance(result, Awaitable) else result:
                return
            await trio.sleep(0.05)
    raise AssertionError(f"it did not happen within {LIMIT} s: {explain()}")

"""Wait for what another process does, for which there is no event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

LIMIT = 60.0  # seconds, as starts and stops of a process have in `tests.e2e.harness`


async def until(
    condition: Callable[[], object | Awaitable[object]], explain: Callable[[], str] = str, *, limit: float = LIMIT
) -> None:
    """Wait until a condition is true of another process, which has no event for it; fail after `limit` seconds."""
    with trio.move_on_after(limit):
        while True:
            result = condition()
            if await result if isinstance(result, Awaitable) else result:
                return
            await trio.sleep(0.05)
    raise AssertionError(f"it did not happen within {limit} s: {explain()}")

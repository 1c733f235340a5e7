"""Use of memory: allocations during a period, and objects by type. Both pause the process for a moment."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable

from schema import ErrorKind, MachineError

LINES = 40


async def allocations(wait: Callable[[], Awaitable[None]]) -> str:
    """Return, as text, the memory allocated during `wait` and not freed, by source line, and all objects by type.

    Raises MachineError (PRECONDITION) if allocations are being traced already.
    """
    if tracemalloc.is_tracing():
        raise MachineError(
            "allocations are already being traced", kind=ErrorKind.PRECONDITION, remedy="wait until it ends"
        )
    tracemalloc.start()
    try:
        await wait()
        held = tracemalloc.take_snapshot().statistics("lineno")
    finally:
        tracemalloc.stop()
    total = sum(statistic.size for statistic in held)
    lines = [
        f"allocated and not freed: {total / 1024:.1f} KiB in {sum(statistic.count for statistic in held)} blocks",
        "",
    ]
    lines += [
        f"{statistic.size / 1024:10.1f} KiB {statistic.count:8} blocks  {statistic.traceback}"
        for statistic in held[:LINES]
    ]
    return "\n".join([*lines, "", *_objects()]) + "\n"


def _objects() -> list[str]:
    """Return lines with the objects that the garbage collector tracks, most frequent types first."""
    counts = Counter(f"{type(item).__module__}.{type(item).__qualname__}" for item in gc.get_objects())
    return [f"objects: {counts.total()}", "", *(f"{count:10}  {name}" for name, count in counts.most_common(LINES))]

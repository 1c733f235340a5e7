"""Several calls at once, as if they were one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from schema.errors import MachineError


async def together(*calls: Callable[[], Awaitable[object]]) -> None:
    """Run the calls concurrently. The first MachineError cancels the others and is raised bare, without a group."""

    async def one(call: Callable[[], Awaitable[object]]) -> None:
        await call()

    try:
        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(one, call)
    except BaseExceptionGroup as group:
        raise plain(group) from None


def plain(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first MachineError in a group; the group itself if there is none."""
    errors = group.subgroup(MachineError)
    leaf: BaseException = group if errors is None else errors
    while errors is not None and isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf

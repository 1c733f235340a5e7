"""Run calls concurrently, and raise errors of nurseries without exception groups."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

from schema import MachineError


async def gather(*calls: Callable[[], Awaitable[object]]) -> None:
    """Run the calls concurrently. The first MachineError cancels the others and is raised without a group."""

    async def run(call: Callable[[], Awaitable[object]]) -> None:
        await call()

    try:
        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(run, call)
    except BaseExceptionGroup as group:
        raise unwrap(group) from None


@contextmanager
def ungrouped(*kinds: type[Exception]) -> Iterator[None]:
    """Raise an error of one of these kinds without the exception groups of nurseries in the block.

    Use it around a nursery if errors of its tasks are handled outside: a plain `except` does not catch them in a group.
    If several tasks have failed, all with these kinds, the first error is raised. A group with other errors is raised
    unchanged. Cancelled in a group need not be raised again: the next checkpoint does.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        leaf: BaseException | None = group.split(trio.Cancelled)[1]
        expected: tuple[type[BaseException], ...] = (trio.Cancelled, *kinds)
        if leaf is None or group.split(expected)[1] is not None:
            raise
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        raise leaf from None


def unwrap(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first MachineError in a group, or the group itself if it has none."""
    errors = group.subgroup(MachineError)
    leaf: BaseException = group if errors is None else errors
    while errors is not None and isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf


def raised_alone(group: BaseExceptionGroup[BaseException], error: BaseException) -> bool:
    """Return whether a nursery raised `group` only because its block raised `error`.

    If the caller was cancelled meanwhile, the group also contains the Cancelled of the nursery's tasks. They need not
    be raised again: the next checkpoint raises Cancelled.
    """
    _, others = group.split(trio.Cancelled)
    return others is not None and others.exceptions == (error,)

"""Waiting for changes: none is missed, whenever it occurs."""

from __future__ import annotations

from contextlib import aclosing

import trio
import trio.testing

from support.changes import ChangeSignal


async def test_a_change_that_occurs_after_next_was_read_is_not_missed() -> None:
    signal = ChangeSignal()
    change = signal.next
    signal.announce()
    with trio.fail_after(1):
        await change.wait()


async def test_all_waiting_tasks_are_woken_and_wait_again_for_the_next_change(
    autojump_clock: trio.testing.MockClock,
) -> None:
    signal, woken = ChangeSignal(), [0, 0]

    async def follow(number: int) -> None:
        while True:
            await signal.next.wait()
            woken[number] += 1

    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(follow, number)
        await trio.testing.wait_all_tasks_blocked()
        for count in (1, 2):
            signal.announce()
            await trio.testing.wait_all_tasks_blocked()
            assert woken == [count, count]
        nursery.cancel_scope.cancel()


async def test_a_slow_consumer_of_values_gets_the_last(autojump_clock: trio.testing.MockClock) -> None:
    signal, values, seen = ChangeSignal(), [0], list[int]()

    async def follow() -> None:
        async with aclosing(signal.values(lambda: values[-1])) as changes:
            async for value in changes:
                seen.append(value)
                await trio.sleep(10)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        await trio.sleep(1)
        for number in range(1, 4):
            values.append(number)
            signal.announce()
        await trio.sleep(30)
        nursery.cancel_scope.cancel()
    assert seen == [0, 3]

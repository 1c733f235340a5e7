"""The ring: bounded, in order, and a stream that never loses the newest entry."""

from __future__ import annotations

from contextlib import aclosing

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from telemetry.logs.entry import Entry
from telemetry.logs.ring import LogRing


def entry(seq: int) -> Entry:
    return Entry(seq, 0.0, 20, "rdk", "", str(seq))


@given(st.integers(1, 20), st.integers(0, 60), st.integers(-1, 70))
def test_entries_are_the_newest_above_since(size: int, written: int, since: int) -> None:
    ring = LogRing(size)
    for seq in range(1, written + 1):
        ring.write(entry(seq))
    expected = [seq for seq in range(max(1, written - size + 1), written + 1) if seq > since]
    assert [e.seq for e in ring.entries(since)] == expected
    assert ring.last == written


async def test_a_reader_gets_old_entries_at_once_and_new_ones_as_they_come(autojump_clock: object) -> None:
    ring = LogRing()
    ring.write(entry(1))
    async with aclosing(ring.changes()) as changes:
        assert [e.seq for e in await anext(changes)] == [1]
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def _() -> None:
                await trio.testing.wait_all_tasks_blocked()
                ring.write(entry(2))
                ring.write(entry(3))

            assert [e.seq for e in await anext(changes)] == [2, 3]


async def test_a_slow_reader_misses_the_oldest_never_the_newest(autojump_clock: object) -> None:
    ring = LogRing(3)
    async with aclosing(ring.changes()) as changes:
        for seq in range(1, 10):
            ring.write(entry(seq))
        assert [e.seq for e in await anext(changes)] == [7, 8, 9]
        with pytest.raises(trio.TooSlowError), trio.fail_after(1):
            await anext(changes)


async def test_many_readers_are_all_woken(autojump_clock: object) -> None:
    ring = LogRing()
    seen: list[int] = []

    async def read() -> None:
        async with aclosing(ring.changes()) as changes:
            seen.append((await anext(changes))[-1].seq)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        ring.write(entry(1))
    assert seen == [1] * 5

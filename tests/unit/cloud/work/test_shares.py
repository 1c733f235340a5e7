"""The processor share of each organization in shared threads."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from cloud.work.crew import Crew
from cloud.work.shares import BURST, LONG, SHARE, Shares
from support.worker import Worker


def test_calls_above_the_burst_wait() -> None:
    shares = Shares()
    assert shares.note("one", BURST, 100.0) == 0
    assert shares.note("one", 0.1, 100.0) == pytest.approx(0.1 / SHARE)
    assert shares.note("more", 0.1, 100.0) == 0
    assert shares.note("one", 0.1, 100.0 + (BURST + 0.1) / SHARE) == 0  # its debt has drained


def test_short_calls_do_not_count() -> None:
    shares = Shares()
    assert not any(shares.note("one", LONG / 2, 0.0) for _ in range(1000))


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0, 2)), max_size=50))
def test_an_organization_that_waits_gets_no_more_than_its_share(calls: list[tuple[float, float]]) -> None:
    shares, now, taken = Shares(), 0.0, 0.0
    for seconds, idle in calls:
        now += idle + seconds
        taken += seconds if seconds >= LONG else 0
        now += shares.note("one", seconds, now)
        assert taken <= BURST + now * SHARE + 1e-6


async def test_an_organization_waits_only_while_another_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shares, "note", lambda self, organization, seconds, now: 3600.0)
    begun: list[str] = []
    async with AsyncExitStack() as stack:
        workers = [Worker(f"crew {number}") for number in range(2)]
        for worker in workers:
            await stack.enter_async_context(worker.opened())
        crew = Crew(workers, 2, shared=1)
        await stack.enter_async_context(crew.opened())

        async def call(organization: str) -> None:
            await crew.run(organization, lambda _: begun.append(organization))

        await call("more")
        await call("more")  # no other organization is active
        await call("one")
        await call("")
        await call("")  # the cloud itself is never delayed
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, "one")  # delayed since its first call
            nursery.start_soon(call, "more")
            await trio.testing.wait_all_tasks_blocked()
            while "more" not in begun[5:]:
                await trio.testing.wait_all_tasks_blocked(0.01)
            assert begun == ["more", "more", "one", "", "", "more"]
            nursery.cancel_scope.cancel()

"""A test that never ends fails, and reports what it waited for."""

from __future__ import annotations

import signal
import time

import pytest
import trio
from trio.testing import MockClock

from tests import limit
from tests.limit import TooLong, alarm, run


async def wait_for_ever() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)


async def spin() -> None:
    while True:
        await trio.lowlevel.checkpoint()


async def a_day() -> str:
    await trio.sleep(86_400)
    return "done"


def test_the_wait_of_every_task_is_reported() -> None:
    with pytest.raises(TooLong, match=r"(?s)not ended within 0 s:.*test_limit\.py:\d+ wait_for_ever"):
        run(0.01, wait_for_ever)


@pytest.mark.parametrize("clock", [None, MockClock(autojump_threshold=0)])
def test_the_wall_counts_whatever_the_clock_says(clock: MockClock | None) -> None:
    with pytest.raises(TooLong):
        run(0.01, spin, clock=clock)


def test_virtual_time_does_not_count_toward_the_limit() -> None:
    assert run(10, a_day, clock=MockClock(autojump_threshold=0)) == "done"


def test_code_that_blocks_the_loop_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        while True:
            pass

    monkeypatch.setattr(limit, "FAIL_AGAIN", 0.05)
    begin = time.monotonic()
    with pytest.raises(TooLong, match="nor after it was cancelled"):
        run(0.01, main)
    assert time.monotonic() - begin < 10


def test_an_alarm_within_an_alarm_leaves_the_outer_one() -> None:
    with alarm(100, lambda: None):
        handler = signal.getsignal(signal.SIGALRM)
        with alarm(50, lambda: None):
            assert signal.getitimer(signal.ITIMER_REAL)[0] <= 50
        assert signal.getsignal(signal.SIGALRM) is handler
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 100

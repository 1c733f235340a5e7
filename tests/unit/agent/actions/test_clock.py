"""The clock of a driver."""

from __future__ import annotations

import random

import trio
from trio.testing import MockClock

from agent.actions.clock import Clock


async def test_a_moment_is_not_in_the_future_when_it_was_waited_for(mock_clock: MockClock) -> None:
    rng = random.Random(1)
    for _ in range(2000):
        mock_clock.jump(rng.uniform(0, 1e6))
        clock = Clock(lambda: rng.uniform(1e9, 4e9), speed=rng.choice((1.0, 100.0, 7.3)))
        moment = clock.now() + rng.uniform(0, 1e6)
        mock_clock.jump(clock.trio_time(moment) - trio.current_time())
        assert moment <= clock.now() < moment + 1

"""A year of cron jobs in three time zones, with 200 changes of the clock, compared with Debian's cron."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

import pytest
import trio
from trio.testing import MockClock

from runtime.parts.jobs.clock import VirtualClock
from runtime.parts.jobs.job import History, JobRunner
from runtime.parts.jobs.schedule import parse_schedule
from tests.sim.jobs.debian import Cron, Entry

MINUTES: Final = 366 * 24 * 60
START: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)  # no zone of the test is near midnight or a change
JOBS: Final = (
    "30 2 * * *",
    "15 2 * * *",
    "0 3 * * *",
    "0 2 * * sun",
    "0 8 * * mon-fri",
    "15,45 1-3 * * *",
    "59 23 28-31 * 6",
    "0 0 1 1,4,7,10 *",
    "17 */4 * * *",
    "*/20 2 * * *",
    "0 */6 * * *",
)
ZONES: Final = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")


def changes(seed: int, count: int) -> dict[float, timedelta]:
    """Return by how much the clock is wrong after moments of the monotonic clock, in seconds."""
    draw = random.Random(seed)
    spans = (5, 5, 60, 179, 180, 181, 240, 1440, 60 * 24 * 40, 60 * 24 * 365 * 30)
    wrong: dict[float, timedelta] = {}
    while len(wrong) < count:
        moment = draw.randrange(MINUTES) * 60.0 + draw.choice((10, 30, 50))
        wrong[moment] = timedelta(
            minutes=draw.randint(-1, 1) * draw.choice((1, draw.random())) * draw.choice(spans) // 1
        )
    return dict(sorted(wrong.items()))


def expected(zone: ZoneInfo, wrong: dict[float, timedelta]) -> list[tuple[int, str]]:
    """Return minutes and jobs that Debian's cron starts."""
    entries = {expression: Entry(expression) for expression in JOBS}
    cron = Cron(entries, START.astimezone(zone))
    moments = list(wrong.items())
    offset, started = timedelta(), []
    for minute in range(1, MINUTES):
        while moments and moments[0][0] < minute * 60:
            offset = moments.pop(0)[1]
        local = (START + timedelta(minutes=minute) + offset).astimezone(zone)
        started += [(minute, name) for name in cron.tick(local)]
    return sorted(started)


async def actual(zone: ZoneInfo, wrong: dict[float, timedelta]) -> list[tuple[int, str]]:
    """Return minutes and jobs that JobRunner starts; each run began at the time that was shown as the next."""
    clock, started = VirtualClock(START.astimezone(zone)), []
    begin = trio.current_time()

    async def call(name: str) -> None:
        seconds = trio.current_time() - begin
        assert round(seconds % 60, 3) in (0, 60), (name, seconds)
        started.append((round(seconds / 60), name))
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for name in JOBS:
            runner = JobRunner(parse_schedule(name, ""), partial(call, name), History(), clock, lambda error: None)
            nursery.start_soon(runner.run)
        for moment, offset in wrong.items():
            await trio.sleep_until(begin + moment)
            clock.set((START + timedelta(seconds=moment) + offset).astimezone(zone))
        await trio.sleep_until(begin + MINUTES * 60 - 30)
        nursery.cancel_scope.cancel()
    return sorted(started)


@pytest.mark.parametrize("zone", ZONES)
async def test_jobs_run_when_debians_cron_runs_them(autojump_clock: MockClock, zone: str) -> None:
    right = await actual(ZoneInfo(zone), {})
    assert right == expected(ZoneInfo(zone), {})
    assert len(right) > 7_000
    wrong = changes(2026, 200)
    assert await actual(ZoneInfo(zone), wrong) == expected(ZoneInfo(zone), wrong)

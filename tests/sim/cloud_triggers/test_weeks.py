"""In weeks of a cloud that is killed at any step, no delivery is lost and no event has two ids."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from cloud.domain.machines.online import SILENCE
from cloud.domain.triggering import deliveries
from cloud.domain.triggering.deliveries import Delivery, DeliveryState
from tests.scope import some_of
from tests.sim.cloud_triggers.world import HOT, LIMIT, LOGS, LONG, PAUSES, PRESENCE, START, World, numbers_of
from triggers.retry import SCHEDULE

QUIET = 5 * 86400.0  # seconds until the last retry has ended


async def lived(seed: int, length: float) -> tuple[World, list[str]]:
    world = World(seed)
    parts = [world.part(f"rover {number}") for number in range(3)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.live)
        async with trio.open_nursery() as days:
            for part in parts:
                days.start_soon(world.machine, part, length * 86400.0)
        world.calm = True
        await trio.sleep(QUIET)
        nursery.cancel_scope.cancel()
    return world, parts


def of_part(world: World, part: str) -> list[Delivery]:
    """Return every delivery of a part, in order."""
    results: list[Delivery] = []
    before = None
    while page := deliveries.deliveries(world.sql(), part, before=before, limit=500):
        results += page
        before = page[-1].number
    return results[::-1]


@pytest.mark.parametrize(("seed", "length"), some_of(2, [(1, 3), (2, 3), (3, 3), (0, 14)], 20))
async def test_weeks(seed: int, length: float, autojump_clock: MockClock) -> None:
    world, parts = await lived(seed, length)
    try:
        assert world.kills > 10 * length
        for part in parts:
            result = of_part(world, part)
            uploads(world, part, result)
            outcomes(world, result)
            logged(world, part, result)
            came_and_went(world, part, [item for item in result if item.target == PRESENCE])
        orders(world)
        assert world.sql().rows("SELECT * FROM trigger_events") == []
        assert sum(world.seen.count.values()) > len(world.seen.count)  # some were received twice, with one id
    finally:
        world.close()


def uploads(world: World, part: str, result: list[Delivery]) -> None:
    """Check that each target got exactly what the rules say: no loss, no duplicate, and pauses kept."""
    kept = world.sql().rows("SELECT number, at, celsius FROM uploads WHERE part = ? ORDER BY rowid", part)
    assert len(kept) > 20
    for target, pause in PAUSES.items():
        expected, last = [], None
        for row in sorted(kept, key=lambda item: item["at"]):
            at = START + timedelta(microseconds=row["at"])
            if target == HOT and row["celsius"] <= LIMIT:
                continue
            if last is None or at - last >= timedelta(seconds=pause):
                expected.append(row["number"])
                last = at
        assert [number for element in result if element.target == target for number in numbers_of(element)] == expected
        times = [entry.created for entry in result if entry.target == target]
        assert all(b - a >= timedelta(seconds=pause) for a, b in pairwise(times))


def outcomes(world: World, result: list[Delivery]) -> None:
    """Check that each delivery succeeded, was rejected, or used all attempts, and that every attempt is recorded."""
    for item in result:
        tries = deliveries.attempts(world.sql(), item.id)
        assert [each.number for each in tries] == list(range(1, item.attempts + 1))
        assert tries[0].started - item.created < timedelta(seconds=LONG)  # no delivery waits for the next event
        if item.state is DeliveryState.DELIVERED:
            assert world.seen.count[item.id] >= 1
            assert tries[-1].error == ""
        else:
            assert item.state is DeliveryState.FAILED
            assert item.id in world.refused or len(tries) == len(SCHEDULE) + 1
        assert all(each.error for each in tries[:-1])


def orders(world: World) -> None:
    """Check that first attempts to a target were in order: a delivery that arrives out of order had failed before."""
    for (part, target), numbers in world.seen.order.items():
        highest = 0
        for number in numbers:
            if number < highest:
                row = world.sql().row("SELECT id FROM deliveries WHERE number = ?", number)
                assert row is not None
                first = deliveries.attempts(world.sql(), row["id"])[0]
                assert first.error, f"{part} {target}: {number} came after {highest} without having failed before"
            highest = max(highest, number)


def logged(world: World, part: str, result: list[Delivery]) -> None:
    """Check that each error of the machine is delivered once, and failures of deliveries are not."""
    messages = [number for item in result if item.target == LOGS for number in numbers_of(item)]
    assert sorted(messages) == sorted(world.said[part])


def came_and_went(world: World, part: str, result: list[Delivery]) -> None:
    """Check that online and offline alternate, and that offline follows a minute of silence and is never missed."""
    events = [element.event for element in result]
    assert events == [("part_online", "part_offline")[number % 2] for number in range(len(events))]
    assert events[-1] == "part_offline"
    calls = world.calls[part]
    for item in result:
        before = max((call for call in calls if call <= item.created), default=START)
        if item.event == "part_offline":
            assert item.created - before >= SILENCE - timedelta(seconds=1)
        else:
            assert any(abs(call - item.created) < timedelta(seconds=130) for call in calls)
    steady = calls[0]
    for start, end in pairwise([*calls, datetime.max.replace(tzinfo=START.tzinfo)]):
        if start - steady > timedelta(seconds=LONG):
            assert state(result, start) == "part_online", f"calling from {steady} to {start}"
        if end - start > timedelta(seconds=LONG):  # a single call right before a long kill may go unreported
            assert state(result, end) == "part_offline", f"silent from {start} to {end}"
        if end - start >= SILENCE:
            steady = end


def state(result: list[Delivery], moment: datetime) -> str:
    """Return the last event reported before a moment."""
    return next((item.event for item in reversed(result) if item.created < moment), "part_offline")

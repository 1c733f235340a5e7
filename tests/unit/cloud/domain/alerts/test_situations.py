"""Every situation in the store, with two replicas, on both databases."""

from __future__ import annotations

import pytest

from cloud.server.memory import MemoryCloud
from tests.unit.cloud.conftest import BOTH, Clock
from tests.unit.cloud.domain.alerts.situations import SITUATIONS
from tests.unit.cloud.domain.alerts.store_help import Kitchen


@BOTH
async def test_situations_in_the_store(cloud: MemoryCloud, clock: Clock) -> None:
    differences = []
    for situation in SITUATIONS:
        kitchen = Kitchen(cloud, clock)
        await kitchen.prepare(situation)
        await kitchen.play(situation)
        result = await kitchen.events(), await kitchen.messages()
        if result != (situation.events, situation.messages):
            differences.append(f"{situation.name}: {result}, and not {(situation.events, situation.messages)}")
        await kitchen.edit("deleted") if "deleted" not in situation.steps else None
    assert differences == []


@pytest.mark.parametrize("count", [3])
async def test_replicas_divide_the_deadlines(cloud: MemoryCloud, clock: Clock, count: int) -> None:
    situation = SITUATIONS[2]
    kitchen = Kitchen(cloud, clock)
    await kitchen.prepare(situation)
    await kitchen.play(situation)
    for _ in range(count):
        await kitchen.run()
    assert await kitchen.messages() == situation.messages

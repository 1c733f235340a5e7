"""Calls that return all machines read a few at a time, and return what one transaction would."""

from __future__ import annotations

from typing import Any

import pytest

from cloud.domain.machines import machines as stored_machines
from cloud.server.memory import APP, MemoryCloud
from cloud.services.machines import machines, whole_fleet
from cloud.services.machines.fleet import FleetService
from cloud.store.sql import Sql
from cloud.values.author import KEY, Author
from rpc.api import AGENTS, HEALTH
from tests.unit.cloud.conftest import BOTH

NAMES = [f"m{number}" for number in range(5)]
UPDATES = {"agent": {"version": "1", "target": "1"}, "server": {"version": "2", "target": "2"}, "states": []}


@pytest.fixture(autouse=True)
def _few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_fleet, "BATCH", 2)
    monkeypatch.setattr(machines, "TOGETHER", 2)


async def _filled(cloud: MemoryCloud) -> list[str]:
    """Create machines that have reported; return their parts."""

    def report(sql: Sql, machine: str) -> str:
        (part,) = stored_machines.parts(sql, machine)
        stored_machines.note_seen(sql, part.id, cloud.cloud.clock(), {"problems": 1, "updates": UPDATES})
        return part.id

    created = [await cloud.app("new_robot", name=name, location=cloud.first.location) for name in NAMES]
    return [await cloud.cloud.store.write(lambda sql, machine=machine: report(sql, machine)) for machine in created]


@BOTH
async def test_health_and_agents_of_all_machines(cloud: MemoryCloud) -> None:
    parts = await _filled(cloud)
    health = await cloud.client().call(HEALTH, "", "list_health")
    assert [(each["part_id"], each["problems"]) for each in health] == [(part, 1) for part in parts]
    agents = await cloud.client().call(AGENTS, "", "list_agents")
    assert [each["part_id"] for each in agents] == parts


@BOTH
async def test_summaries_of_all_machines_or_some(cloud: MemoryCloud) -> None:
    await _filled(cloud)

    async def names(**arguments: Any) -> list[str]:
        owner = cloud.first.organization
        places = await cloud.client().call(APP, "", "list_machine_summaries", organization_id=owner, **arguments)
        return [machine["machine_name"] for place in places for machine in place["machine_summaries"]]

    assert await names() == NAMES
    assert await names(limit=3) == NAMES[:3]
    assert await names(location_ids=["none"]) == []


@BOTH
async def test_metrics_of_all_machines(cloud: MemoryCloud) -> None:
    await _filled(cloud)
    service = FleetService(cloud.cloud, Author(KEY, cloud.first.id))
    listed, totals = await service.figures()
    assert ([machine.name for machine in listed], totals is not None) == (NAMES, True)

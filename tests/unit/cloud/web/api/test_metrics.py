"""`/metrics` of the cloud: machines for their organization, process metrics for the operator of the cloud."""

from __future__ import annotations

import base64
from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families as parse

from cloud.domain.machines.machines import note_seen
from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import browser


async def scrape(cloud: MemoryCloud, subject: str, key: str) -> dict[tuple[str, str, str], float]:
    """Return the values by name, machine and state."""
    header = base64.b64encode(f"{subject}:{key}".encode()).decode()
    reply = await browser(cloud).get("/metrics", {"authorization": f"Basic {header}"})
    assert reply.status == 200, reply.text
    return {
        (sample.name, sample.labels.get("machine", ""), sample.labels.get("state", "")): sample.value
        for item in parse(reply.text)
        for sample in item.samples
    }


async def test_states_of_machines_are_exported(cloud: MemoryCloud, clock: Clock, machine: str, part: str) -> None:
    await cloud.cloud.store.write(lambda sql: note_seen(sql, part, clock(), {"unhealthy": 2}))
    result = await scrape(cloud, cloud.first.id, cloud.first.key)
    assert result["machine_cloud_machine_state", "rover", "degraded"] == 1
    assert result["machine_cloud_machine_state", "rover", "online"] == 0
    assert result["machine_cloud_machine_problems", "rover", ""] == 2
    assert result["machine_cloud_machine_last_seen_timestamp_seconds", "rover", ""] > 1.7e9
    assert ("process_resident_memory_bytes", "", "") in result
    for name in ("files", "readings", "bytes"):
        assert result[f"machine_cloud_sealed_{name}", "", ""] == 0
    clock.now += timedelta(minutes=5)
    result = await scrape(cloud, cloud.first.id, cloud.first.key)
    assert result["machine_cloud_machine_state", "rover", "offline"] == 1


async def test_another_organization_sees_neither_machines_nor_the_process(cloud: MemoryCloud, machine: str) -> None:
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    assert await scrape(cloud, other.id, other.key) == {}

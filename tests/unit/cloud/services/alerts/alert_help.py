"""Helpers for tests of alerts: calls, readings of a machine, and the passing of deadlines."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cloud.domain.alerts import deadlines
from cloud.domain.alerts.observing import Observer
from cloud.domain.triggering.evaluation import evaluate_some
from cloud.server.memory import MemoryCloud
from rpc.api.cloud_v1 import ALERTS
from tests.unit.cloud.captured import Uploads

RULE: dict[str, Any] = {
    "name": "freezer warm",
    "kind": "reading",
    "condition": {"path": "celsius", "comparison": "gt", "threshold": -10},
    "targets": [{"type": "webhook", "value": "https://receiver.test/secret-path"}],
    "group_seconds": 0,
}


async def call(cloud: MemoryCloud, method: str, key: str = "", /, **arguments: Any) -> Any:
    return await cloud.client(key).call(ALERTS, "", method, **arguments)


async def measured(cloud: MemoryCloud, part: str, moment: datetime, **readings: float) -> None:
    """Upload one reading as the machine does."""
    metadata = {"time_requested": moment, "time_received": moment}
    await Uploads(cloud, part).readings({"metadata": metadata, "struct": {"readings": readings}})


async def settle(cloud: MemoryCloud) -> None:
    """Evaluate what waits, and let deadlines come."""
    page, observe = cloud.cloud.links.page, Observer(cloud.cloud.clock)
    while await cloud.cloud.store.write(lambda sql: evaluate_some(sql, page, observe=observe)):
        pass
    while await cloud.cloud.store.write(lambda sql: deadlines.come_due(sql, cloud.cloud.clock(), page)):
        pass


async def warm(cloud: MemoryCloud, part: str, celsius: float = -3.0) -> None:
    await measured(cloud, part, cloud.cloud.clock(), celsius=celsius)
    await settle(cloud)


async def new_rule(cloud: MemoryCloud, **changes: Any) -> str:
    rule = {**RULE, **changes}
    return str(await call(cloud, "set_alert_rule", organization_id=cloud.first.organization, rule=rule))

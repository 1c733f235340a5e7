"""Helpers for tests of triggers: parts with triggers, uploads, and fake receivers."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import trio

from cloud.domain.data.readings import new_reading
from cloud.domain.triggering import deliveries
from cloud.domain.triggering.deliveries import Delivery
from cloud.domain.triggering.evaluation import evaluate_some
from cloud.domain.triggering.ingestion import Ingestion, ingested
from cloud.domain.triggering.outbox import Outbox
from cloud.server.memory import ROBOT, MemoryCloud
from cloud.store.sql import Sql
from triggers.document import Notification
from triggers.retry import AttemptOutcome

URL = "https://receiver.test/hook"


def webhook(value: str = URL, **more: Any) -> dict[str, Any]:
    return {"type": "webhook", "value": value, **more}


def email(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "email", "value": value, **more}


def trigger(name: str, type: str, *targets: dict[str, Any], **event: Any) -> dict[str, Any]:  # noqa: A002 - field
    return {"name": name, "event": {"type": type, **event}, "notifications": list(targets) or [webhook()]}


def tabular(name: str, *targets: dict[str, Any]) -> dict[str, Any]:
    return trigger(name, "part_data_ingested", *targets, data_ingested={"data_types": ["tabular"]})


def hotter(name: str, than: float, *targets: dict[str, Any]) -> dict[str, Any]:
    conditional = {
        "data_capture_method": "sensor:oven:Readings",
        "conditions": {"evals": [{"operator": "gt", "value": {"celsius": than}}]},
    }
    return trigger(name, "conditional_data_ingested", *targets, conditional=conditional)


async def configure(cloud: MemoryCloud, part: str, *triggers: Mapping[str, Any]) -> None:
    text = json.dumps({"triggers": list(triggers)})
    await cloud.app("update_robot_part", id=part, name="", robot_config_json=text)


async def upload(cloud: MemoryCloud, part: str, *celsius: float, data_type: str = "tabular") -> None:
    """Upload readings of the component `oven` in one request."""
    now = cloud.cloud.clock()
    came = tuple(new_reading(now, now, {"readings": {"celsius": temperature}}) for temperature in celsius)
    what = Ingestion(part, "sensor", "oven", "Readings", data_type, "file-1", now, now, came)
    await cloud.cloud.store.write(lambda sql: ingested(sql, what, now))


async def call_in(cloud: MemoryCloud, part: str) -> None:
    """Make a call as the part's machine."""
    await cloud.client(part, "robot-secret").call(ROBOT, "", "needs_restart", id=part)


async def evaluated(cloud: MemoryCloud, part: str) -> list[Delivery]:
    """Evaluate everything that waits, and return the deliveries of a part in order."""
    while await cloud.cloud.store.write(lambda sql: evaluate_some(sql, cloud.cloud.links.page)):
        pass
    return await log(cloud, part)


async def log(cloud: MemoryCloud, part: str) -> list[Delivery]:
    return (await cloud.cloud.store.read(lambda sql: deliveries.deliveries(sql, part, limit=500)))[::-1]


async def rows(cloud: MemoryCloud, statement: str) -> list[Mapping[str, Any]]:
    def work(sql: Sql) -> list[Mapping[str, Any]]:
        return list(sql.rows(statement))

    return await cloud.cloud.store.read(work)


class Receiver:
    """A sender that returns prepared outcomes and keeps what it received."""

    def __init__(self, *outcomes: AttemptOutcome) -> None:
        self.outcomes = deque(outcomes)
        self.got: list[tuple[str, datetime]] = []
        self.before: Callable[[Delivery], Any] | None = None

    async def __call__(self, item: Delivery, target: Notification, secret: str, now: datetime) -> AttemptOutcome:
        self.got.append((item.id, now))
        if self.before is not None:
            await self.before(item)
        return self.outcomes.popleft() if self.outcomes else AttemptOutcome(200)


async def sent(cloud: MemoryCloud, receiver: Receiver) -> None:
    """Run one round of the outbox."""
    outbox = Outbox(cloud.cloud.store, cloud.cloud.events, cloud.cloud.clock, {"webhook": receiver, "email": receiver})
    async with trio.open_nursery() as nursery:
        await outbox.round(nursery)


@asynccontextmanager
async def sending(cloud: MemoryCloud, receiver: Receiver) -> AsyncIterator[None]:
    """Run the outbox."""
    outbox = Outbox(cloud.cloud.store, cloud.cloud.events, cloud.cloud.clock, {"webhook": receiver})
    async with trio.open_nursery() as nursery:
        await nursery.start(outbox.run)
        yield
        nursery.cancel_scope.cancel()

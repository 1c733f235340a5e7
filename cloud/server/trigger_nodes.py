"""Nodes of triggers and alerts: presence of machines, evaluation of events, hourly check of logs, deadlines, outbox."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import trio

from cloud.domain.alerts import deadlines
from cloud.domain.alerts.observing import Observer
from cloud.domain.triggering.evaluation import evaluate
from cloud.domain.triggering.hourly import watch
from cloud.domain.triggering.outbox import Outbox
from cloud.domain.triggering.presence import Watch
from cloud.domain.triggering.senders import senders
from cloud.domain.triggering.ways import DeliverySettings
from cloud.services.common.base import Cloud
from nursery_graph import Node, Restart


def nodes(ways: DeliverySettings, restart: Restart) -> list[Node]:
    """Return the nodes, which restart independently: a hanging mail server does not delay offline detection."""
    return [
        Node("presence", _presence, requires={"cloud"}, restart=restart),
        Node("triggers", _triggers, requires={"cloud"}, restart=restart),
        Node("alerts", _alerts, requires={"cloud"}, restart=restart),
        Node("outbox", partial(_outbox, ways), requires={"cloud"}, restart=restart),
    ]


async def _presence(deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
    cloud: Cloud = deps["cloud"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cloud.seen.run, cloud.store)
        await Watch(cloud.store, cloud.events, cloud.clock).run(task_status=task_status)


async def _triggers(deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
    cloud: Cloud = deps["cloud"]
    async with trio.open_nursery() as nursery:
        await nursery.start(evaluate, cloud.store, cloud.events, cloud.links.page, Observer(cloud.clock))
        await nursery.start(watch, cloud.store, cloud.clock)
        task_status.started()


async def _alerts(deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
    cloud: Cloud = deps["cloud"]
    await deadlines.run(cloud.store, cloud.events, cloud.clock, cloud.links.page, task_status=task_status)


async def _outbox(ways: DeliverySettings, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
    cloud: Cloud = deps["cloud"]
    async with senders(ways) as senders_by_type:
        await Outbox(cloud.store, cloud.events, cloud.clock, senders_by_type).run(task_status=task_status)

"""What lives for the triggers: who is online, evaluation with the hourly look at logs, and the outbox."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import trio

from cloud.services.base import Cloud
from cloud.triggering.evaluation import evaluate
from cloud.triggering.hourly import watch
from cloud.triggering.outbox import Outbox
from cloud.triggering.presence import Watch
from cloud.triggering.senders import senders
from cloud.triggering.ways import Ways
from nursery_graph import Node, Restart


def nodes(ways: Ways, restart: Restart) -> list[Node]:
    """Each fails and starts again for itself: a mail server that hangs makes nobody late to learn who is offline."""
    return [
        Node("presence", _presence, requires={"cloud"}, restart=restart),
        Node("triggers", _triggers, requires={"cloud"}, restart=restart),
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
        await nursery.start(evaluate, cloud.store, cloud.events, cloud.links.page)
        await nursery.start(watch, cloud.store, cloud.clock)
        task_status.started()


async def _outbox(ways: Ways, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
    cloud: Cloud = deps["cloud"]
    async with senders(ways) as known:
        await Outbox(cloud.store, cloud.events, cloud.clock, known).run(task_status=task_status)

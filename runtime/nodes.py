"""Resources as nodes of the graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import structlog
import trio

from nursery_graph import Node, Restart
from runtime.host import ResourceHost
from runtime.machine import Machine
from runtime.reconfigure import Plan, Wanted
from runtime.refused import NO_RESTART, refused

LOGGER: Final = "rdk.resource_manager"  # loggers of resources hang below it; reference name
START_LIMIT_VARIABLE: Final = "MACHINE_RESOURCE_CONFIGURATION_TIMEOUT"  # seconds
START_LIMIT: Final = 120.0  # seconds to become ready; reference: 2 min
STOP_LIMIT: Final = 30.0  # seconds to stop; reference value

RESTART: Final = Restart(kind="permanent", intensity=1_000_000, first_delay=0.5, max_delay=10.0)
"""Hardware comes back: a resource is tried for ever, never more than 10 s apart."""


def resource_nodes(machine: Machine, plan: Plan) -> list[Node]:
    """One node for each resource that the plan wants."""
    revision = machine.config.revision
    limit = start_limit()
    return [_node(machine, name, wanted, revision, limit) for name, wanted in plan.wanted.items()]


def start_limit() -> float:
    """Seconds that a resource has to become ready: START_LIMIT unless the environment says otherwise."""
    try:
        seconds = float(os.environ[START_LIMIT_VARIABLE])
    except (KeyError, ValueError):
        return START_LIMIT
    return seconds if 0 < seconds < float("inf") else START_LIMIT


def _node(machine: Machine, name: str, wanted: Wanted, revision: str, limit: float) -> Node:
    return Node(
        name,
        refused(wanted.fault) if wanted.fault is not None else partial(_live, machine, wanted),
        requires=wanted.requires,
        uses=wanted.uses,
        version=wanted.version,
        revision=revision,
        start_timeout=limit,
        stop_timeout=STOP_LIMIT,
        restart=NO_RESTART if wanted.fault is not None else RESTART,
    )


async def _live(
    machine: Machine, wanted: Wanted, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[ResourceHost]
) -> None:
    log = structlog.get_logger(f"{LOGGER}.{wanted.name}")
    host = ResourceHost(
        wanted,
        world=machine.world,
        hardware=machine.hardware,
        log=log,
        changed=machine.host_changed,
        others=machine.hosts_of,
    )
    await host.run(deps, task_status=task_status)

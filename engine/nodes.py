"""Creates graph nodes for resources."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog
import trio

from engine.host import ResourceHost
from engine.planning.reconfigure import PlannedResource, ResourcePlan
from engine.planning.refused import NO_RESTART, refusal
from engine.roster import Roster
from hal import Hardware
from hal.sim import World
from nursery_graph import Node, Restart

LOGGER: Final = "rdk.resource_manager"  # parent of the resources' loggers; reference name
START_LIMIT_VARIABLE: Final = "MACHINE_RESOURCE_CONFIGURATION_TIMEOUT"  # seconds
START_LIMIT: Final = 120.0  # seconds to become ready; reference: 2 min
STOP_LIMIT: Final = 30.0  # seconds to stop; reference value

RESTART: Final = Restart(kind="permanent", intensity=1_000_000, first_delay=0.5, max_delay=10.0)
"""Hardware may come back, so restarts never end; they are at most 10 s apart."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What the drivers of a machine open: its hardware, and the world in which simulated devices are."""

    world: World
    hardware: Hardware


def resource_nodes(roster: Roster, bench: Bench, plan: ResourcePlan, revision: str) -> list[Node]:
    """Return one node for each resource that the plan of the configuration `revision` wants."""
    limit = start_limit()
    return [
        _node(partial(_run_host, roster, bench), name, planned, revision, limit)
        for name, planned in plan.resources.items()
    ]


def start_limit() -> float:
    """Return the seconds in which a resource must become ready, from the environment if valid, else START_LIMIT."""
    try:
        seconds = float(os.environ[START_LIMIT_VARIABLE])
    except (KeyError, ValueError):
        return START_LIMIT
    return seconds if 0 < seconds < float("inf") else START_LIMIT


def _node(run_host: Callable[..., Any], name: str, planned: PlannedResource, revision: str, limit: float) -> Node:
    return Node(
        name,
        refusal(planned.fault) if planned.fault is not None else partial(run_host, planned),
        requires=planned.requires,
        uses=planned.uses,
        version=planned.version,
        revision=revision,
        start_timeout=limit,
        stop_timeout=STOP_LIMIT,
        restart=NO_RESTART if planned.fault is not None else RESTART,
    )


async def _run_host(
    roster: Roster,
    bench: Bench,
    planned: PlannedResource,
    deps: Mapping[str, Any],
    /,
    *,
    task_status: trio.TaskStatus[ResourceHost],
) -> None:
    log = structlog.get_logger(f"{LOGGER}.{planned.name}")
    host = ResourceHost(
        planned,
        world=bench.world,
        hardware=bench.hardware,
        log=log,
        changed=roster.host_changed,
        others=roster.hosts_of,
        document=roster.document,
    )
    await host.run(deps, task_status=task_status)

"""Decides whether the machine may be reconfigured or restarted now, a pure function of given facts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.planning.node_names import REMOTE
from schema import INTERNAL_NAMESPACE

if TYPE_CHECKING:
    from engine.views.status import MachineStatus

ANSWER_LIMIT: Final = 5.0  # seconds to wait for readings; reference: no answer in 5 s means not allowed
RETRY_INTERVAL: Final = 10.0  # seconds between checks of a blocked configuration; reference: each poll, every 10 s
FACTS_KEY: Final = "machine-facts"
"""Metadata key, specific to this project, for facts that the published GetMachineStatus reply has no field for."""
MAX_JOBS: Final = 50
MAX_PATHS: Final = 20
REASONS_LIMIT: Final = 3000  # characters of reasons: gRPC clients accept 8 KiB of metadata by default


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether maintenance is allowed, and the reason, as text for a log line or a page."""

    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class NoWindow:
    """No maintenance window is configured, or it cannot work as it is configured."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The sensor exists but returned no readings."""

    reason: str


Answer = NoWindow | NoAnswer | Mapping[str, Any]


def decide(answer: Answer, sensor: str = "", key: str = "") -> Decision:
    """Decide from the sensor's answer.

    If no sensor can ever answer, maintenance is allowed, so that a wrong document can be corrected. If the sensor does
    not answer now, or the value of `key` is not true, maintenance is not allowed.
    """
    match answer:
        case NoWindow(reason):
            return Decision(True, reason)
        case NoAnswer(reason):
            return Decision(False, f"{sensor} returned no readings: {reason}")
    if key not in answer:
        return Decision(False, f"the readings of {sensor} have no {key!r}")
    value = answer[key]
    if value is True:
        return Decision(True, f"{sensor} says {key} is true")
    if value is False:
        return Decision(False, f"{sensor} says {key} is false")
    return Decision(False, f"{key} in the readings of {sensor} is {type(value).__name__}, not true or false")


def _waiting(status: MachineStatus) -> dict[str, str]:
    """Return the reasons of resources that are neither ready nor unhealthy, up to WAITING_ROOM characters."""
    reasons: dict[str, str] = {}
    remaining = REASONS_LIMIT
    for resource in status.resources:
        if resource.reason and resource.state not in ("ready", "unhealthy"):
            remaining -= len(json.dumps([resource.name, resource.reason]))
            if remaining < 0:
                break
            reasons[resource.name] = resource.reason
    return reasons


def _paths(status: MachineStatus) -> dict[str, str]:
    """Return the paths of calls to remotes that are machines of the cloud; the number is limited like that of jobs."""
    remotes = [node for node in status.internal if node.name.startswith(REMOTE) and node.state == "ready"]
    names = ((node.name.removeprefix(REMOTE), node.reason) for node in remotes if node.reason)
    return {f"{INTERNAL_NAMESPACE}:remote:machine/{name}": path for name, path in itertools.islice(names, MAX_PATHS)}


def _next_runs(status: MachineStatus) -> dict[str, str]:
    """Return the next run of the first MOST_JOBS scheduled jobs; the number is limited because headers are."""
    scheduled = [job for job in status.jobs if job.next_run is not None]
    return {job.name: job.next_run.isoformat() for job in scheduled[:MAX_JOBS] if job.next_run is not None}


def facts_of(status: MachineStatus) -> dict[str, Any]:
    """Return the value of FACTS_KEY (as JSON): whether a restart is allowed, the state of the maintenance window, why a
    newer configuration is not applied, what resources wait for, how remotes are called, when jobs run next, and how the
    clock was set."""
    return {
        **({"jobs": jobs} if (jobs := _next_runs(status)) else {}),
        **({"clock": status.clock} if status.clock else {}),
        **({"waiting": waiting} if (waiting := _waiting(status)) else {}),
        **({"paths": paths} if (paths := _paths(status)) else {}),
        "restart_allowed": status.restart_allowed,
        "maintenance": status.maintenance,
        "pending": status.config.pending,
        "rejected": status.config.rejected,
    }

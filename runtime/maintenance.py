"""Maintenance: may the machine be changed or restarted now? A pure decision about facts that others gathered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from runtime.status import MachineStatus

ANSWER_LIMIT: Final = 5.0  # seconds a sensor has for its readings; reference: no answer in 5 s means not allowed
RETRY_INTERVAL: Final = 10.0  # seconds between checks of a blocked configuration; reference: each poll, every 10 s
FACTS_KEY: Final = "machine-facts"
MOST_JOBS: Final = 50
WAITING_ROOM: Final = 3000  # characters of reasons: clients take 8 KiB of metadata by default (gRPC)
"""Metadata key of replies to GetMachineStatus, of this project alone: what the published reply has no place for."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether maintenance is allowed, and why (words for a log line or a page)."""

    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class NoWindow:
    """No maintenance window is configured, or it can never say anything as it is configured."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The sensor exists but gave no readings."""

    reason: str


Answer = NoWindow | NoAnswer | Mapping[str, Any]


def decide(answer: Answer, sensor: str = "", key: str = "") -> Decision:
    """Decide from what the sensor said.

    Where no sensor can ever answer, maintenance is allowed, so that a wrong document can be corrected. A sensor that
    does not answer now, or says anything but true under `key`, means not now.
    """
    match answer:
        case NoWindow(reason):
            return Decision(True, reason)
        case NoAnswer(reason):
            return Decision(False, f"{sensor} gave no readings: {reason}")
    if key not in answer:
        return Decision(False, f"the readings of {sensor} have no {key!r}")
    value = answer[key]
    if value is True:
        return Decision(True, f"{sensor} says {key} is true")
    if value is False:
        return Decision(False, f"{sensor} says {key} is false")
    return Decision(False, f"{key} in the readings of {sensor} is {type(value).__name__}, not true or false")


def _waiting(status: MachineStatus) -> dict[str, str]:
    """Reasons of resources that are neither ready nor unhealthy, as many as there is room for."""
    found: dict[str, str] = {}
    room = WAITING_ROOM
    for one in status.resources:
        if one.reason and one.state not in ("ready", "unhealthy"):
            room -= len(json.dumps([one.name, one.reason]))
            if room < 0:
                break
            found[one.name] = one.reason
    return found


def _next_runs(status: MachineStatus) -> dict[str, str]:
    """When jobs run next, of the first MOST_JOBS that wait for a time: headers are short."""
    waiting = [one for one in status.jobs if one.next_run is not None]
    return {one.name: one.next_run.isoformat() for one in waiting[:MOST_JOBS] if one.next_run is not None}


def facts_of(status: MachineStatus) -> dict[str, Any]:
    """Under FACTS_KEY, as JSON: may it be restarted, what the window says, what keeps a newer configuration out, and
    what resources wait for, which the published reply has no place for."""
    return {
        **({"jobs": jobs} if (jobs := _next_runs(status)) else {}),
        **({"waiting": waiting} if (waiting := _waiting(status)) else {}),
        "restart_allowed": status.restart_allowed,
        "maintenance": status.maintenance,
        "pending": status.config.pending,
        "rejected": status.config.rejected,
    }

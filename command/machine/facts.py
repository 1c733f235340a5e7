"""Facts about a machine from RobotService, as the commands show them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from engine import FACTS_KEY

RESOURCE_STATES: Final = ("unspecified", "unconfigured", "configuring", "ready", "removing", "unhealthy")
MODULE_STATES: Final = ("unspecified", "pending", "starting", "ready", "unhealthy", "closing")
MACHINE_STATES: Final = ("unspecified", "initializing", "running")
"""State names by enum number, for ResourceStatus, ModuleStatus and GetMachineStatusResponse of viam.robot.v1."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as clients see it."""

    name: str  # with remote prefixes
    api: str
    state: str
    since: datetime | None
    revision: str = ""
    reason: str = ""

    @property
    def full(self) -> str:
        """The full name, such as `rdk:component:motor/left`."""
        return f"{self.api}/{self.name}"

    @property
    def subtype(self) -> str:
        """The subtype of the API: `motor` for `rdk:component:motor`."""
        return self.api.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """A module as clients see it."""

    name: str
    state: str
    since: datetime | None
    failures: int = 0  # consecutive failures
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as clients see it."""

    name: str
    next_run: datetime | None  # None if the machine does not report it, or while the job runs
    succeeded: datetime | None  # start of the latest successful run
    failed: datetime | None  # start of the latest failed run


@dataclass(frozen=True, slots=True)
class Machine:
    """The state of a machine."""

    state: str
    revision: str
    updated: datetime | None
    resources: tuple[Resource, ...]
    modules: tuple[ModuleFacts, ...] = ()


def machine_of(reply: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> Machine:
    """Convert a reply of GetMachineStatus. `more`, from `more_of`, adds reasons to wait and paths to remotes."""
    config = reply.get("config") or {}
    reasons: dict[str, Any] = {}
    for key in ("waiting", "paths"):
        facts = (more or {}).get(key)
        reasons |= facts if isinstance(facts, dict) else {}
    resources = [
        Resource(
            *_name(status.get("name")),
            _state(status.get("state"), RESOURCE_STATES),
            status.get("last_updated"),
            status.get("revision", ""),
            status.get("error", ""),
        )
        for status in reply.get("resources", ())
    ]
    resources = [
        resource if resource.reason else replace(resource, reason=str(reasons.get(resource.full, "")))
        for resource in resources
    ]
    return Machine(
        _state(reply.get("state"), MACHINE_STATES),
        config.get("revision", ""),
        config.get("last_updated"),
        tuple(sorted(resources, key=lambda resource: resource.full)),
        tuple(
            ModuleFacts(
                status.get("module_name", ""),
                _state(status.get("state"), MODULE_STATES),
                status.get("last_updated"),
                status.get("consecutive_failures", 0),
                status.get("error", ""),
            )
            for status in reply.get("modules", ())
        ),
    )


def more_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that machine-server adds to the published reply; empty for other servers."""
    try:
        facts = json.loads(metadata.get(FACTS_KEY, "{}"))
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def jobs_of(reply: Mapping[str, Any], more: Mapping[str, Any]) -> list[Job]:
    """Return the jobs in a reply of GetMachineStatus. `more`, from `more_of`, adds their next runs."""
    next_runs = more.get("jobs")
    return [
        Job(
            status.get("job_name", ""),
            _moment(next_runs.get(status.get("job_name"))) if isinstance(next_runs, dict) else None,
            _last(status.get("recent_successful_runs")),
            _last(status.get("recent_failed_runs")),
        )
        for status in reply.get("job_statuses", ())
    ]


def _last(runs: Sequence[datetime] | None) -> datetime | None:
    """Return the newest run. It is the last one, but not always the latest time: the clock may have been set back."""
    return runs[-1] if runs else None


def _moment(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def standing(more: Mapping[str, Any]) -> list[str]:
    """Return lines about a delayed or rejected configuration, the maintenance window, and a clock that was set."""
    lines = []
    if more.get("rejected"):
        lines.append(f"the newest configuration was rejected: {more['rejected']}")
    if more.get("pending"):
        lines.append(f"a newer configuration is pending: {more['pending']}")
    if more.get("maintenance"):
        allowed = "allowed" if more.get("restart_allowed") else "not allowed now"
        lines.append(f"restart {allowed}: {more['maintenance']}")
    if more.get("clock"):
        lines.append(f"the clock was set {more['clock']}; jobs follow it")
    return lines


def names_of(reply: Iterable[object]) -> list[Resource]:
    """Convert a reply of ResourceNames, which lists ready resources."""
    return sorted((Resource(*_name(name), "ready", None) for name in reply), key=lambda resource: resource.full)


def changes(before: Machine | None, after: Machine) -> list[Resource]:
    """Return resources that are new or changed their state or reason, and removed ones with the state `removed`."""
    previous = {resource.full: resource for resource in before.resources} if before else {}
    present_names = {resource.full for resource in after.resources}
    changed = [
        resource
        for resource in after.resources
        if (previous_resource := previous.get(resource.full)) is None
        or (previous_resource.state, previous_resource.reason) != (resource.state, resource.reason)
    ]
    removed = [
        Resource(resource.name, resource.api, "removed", None)
        for full, resource in previous.items()
        if full not in present_names
    ]
    return [*changed, *removed]


def counts(resources: Sequence[Resource]) -> str:
    """Count resources by state, such as `3 ready, 1 unhealthy`, in the order of the status page."""
    order = ("ready", "configuring", "unhealthy", "removing", "unconfigured", "unspecified")
    numbers = {state: sum(resource.state == state for resource in resources) for state in order}
    return ", ".join(f"{number} {state}" for state, number in numbers.items() if number) or "no resources"


def _name(value: object) -> tuple[str, str]:
    """Return name and API of a resource name, which is a mapping or a text."""
    if isinstance(value, Mapping):
        api = f"{value.get('namespace', '')}:{value.get('type', '')}:{value.get('subtype', '')}"
        prefix = value.get("remote_path") or ()
        name = str(value.get("name", ""))
        return (name if ":" in name else ":".join((*prefix, name))), api
    api, _, name = str(value).partition("/")
    return name, api


def _state(value: object, words: Sequence[str]) -> str:
    if isinstance(value, int):
        return words[value] if 0 <= value < len(words) else str(int(value))
    return str(value or words[0]).lower().removeprefix("state_")

"""The status of a machine, computed from its records."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote

import trio

from engine import Explain, Lifecycle, Roster
from engine.calls import Traffic
from engine.planning import INTERNAL, PlannedResource, since_of, state_of
from engine.views import JobStatus, MachineStatus, ModuleStatus, NodeView, ResourceStatus
from nursery_graph import Graph, NodeStatus, State
from runtime.server.configured import Configured
from runtime.server.endpoint import Endpoint
from runtime.server.parts import Parts
from schema.document import Cloud
from support import version

_MODULE_STATES: Final = {
    State.UNCONFIGURED: "pending",
    State.CONFIGURING: "starting",
    State.READY: "ready",
    State.UNHEALTHY: "unhealthy",
    State.REMOVING: "closing",
}


class MachineStart:
    """The start of the machine, by the clock as it is set now. It stays the same until the clock is set."""

    def __init__(
        self, wall: Callable[[], datetime] = lambda: datetime.now(UTC), monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._at, self._moment = monotonic(), wall()

    def moment(self) -> datetime:
        """Return the time of the start; NTP that corrects a clock slowly does not change it."""
        current = self._wall() - timedelta(seconds=self._monotonic() - self._at)
        if abs(current - self._moment) >= timedelta(minutes=1):
            self._moment = current
        return self._moment


@dataclass(frozen=True, slots=True)
class StatusReport:
    """Computes the status; `explain` returns why a node is in its state."""

    graph: Graph
    roster: Roster
    traffic: Traffic
    lifecycle: Lifecycle
    configured: Configured
    endpoint: Endpoint
    parts: Parts
    explain: Explain
    start: MachineStart = field(default_factory=MachineStart)

    def status(self) -> MachineStatus:
        """Return the status; it is consistent, because nothing is awaited while it is computed."""
        nodes = self.graph.snapshot().nodes
        dependents = _dependents(nodes.values())
        planned, configured = self.roster.planned, self.configured
        resources = [self._resource(name, entry, nodes, dependents.get(name, ())) for name, entry in planned.items()]
        resources += [
            self._resource(name, None, nodes, dependents.get(name, ()))
            for name in nodes
            if name not in planned and not name.startswith(INTERNAL)
        ]  # being removed
        return MachineStatus(
            host=socket.gethostname(),
            version=version(),
            state=self.lifecycle.state,
            started=self.start.moment(),
            restart_allowed=configured.maintenance.allowed and not configured.applying,
            maintenance=configured.maintenance.reason if configured.document.maintenance is not None else "",
            config=replace(configured.status, fetched=configured.fetched()),
            resources=tuple(sorted(resources, key=lambda resource: resource.name)),
            internal=tuple(
                self._internal(node, nodes, dependents.get(name, ()))
                for name, node in sorted(nodes.items())
                if name.startswith(INTERNAL)
            ),
            sessions=self.traffic.sessions.status(),
            operations=tuple(operation.status() for operation in self.traffic.operations.running()),
            addresses=self.endpoint.addresses,
            secure=self.endpoint.secure,
            modules=self._modules(nodes),
            jobs=self._jobs(),
            clock=self.parts.jobs.clock.notice if self.parts.jobs is not None else "",
            machine=configured.document.cloud.machine_name if configured.document.cloud is not None else "",
            page=_page_of(configured.document.cloud),
            downloads=tuple(self.parts.packages.downloads.values()) if self.parts.packages is not None else (),
        )

    def _modules(self, nodes: Mapping[str, NodeStatus]) -> tuple[ModuleStatus, ...]:
        modules = []
        for link in self.parts.modules.links.values() if self.parts.modules is not None else ():
            node = nodes.get(link.node)
            modules.append(
                ModuleStatus(
                    name=link.module.name,
                    state=_MODULE_STATES[state_of(node)] if node else "pending",
                    reason=self.explain(node, nodes) if node else "",
                    since=_utc(since_of(node)) if node else self.start.moment(),
                    node=link.node,
                    consecutive_failures=link.failures,
                    models=tuple(sorted({str(model) for _, model in link.offers})),
                )
            )
        return tuple(modules)

    def _jobs(self) -> tuple[JobStatus, ...]:
        histories = self.parts.jobs.histories if self.parts.jobs is not None else {}
        return tuple(
            JobStatus(
                name=job.name,
                schedule=job.schedule,
                resource=job.resource,
                method=job.method,
                running=histories[job.name].running,
                next_run=histories[job.name].next_run,
                succeeded=tuple(histories[job.name].succeeded),
                failed=tuple(histories[job.name].failed),
                last_error=histories[job.name].last_error,
            )
            for job in self.configured.document.jobs
            if job.name in histories
        )

    def _resource(
        self, name: str, planned: PlannedResource | None, nodes: Mapping[str, NodeStatus], dependents: tuple[str, ...]
    ) -> ResourceStatus:
        node = nodes.get(name)
        api, _, _ = name.partition("/")
        host = self.roster.hosts.get(name)
        return ResourceStatus(
            name=name,
            api=api,
            model=planned.model if planned else "",
            state=state_of(node).value if node else "unconfigured",
            reason=self.explain(node, nodes) if node else "",
            since=_utc(since_of(node)) if node else self.start.moment(),
            revision=node.revision if node else "",
            restarts=max(0, node.runs - 1) if node else 0,
            dependencies=tuple(sorted(node.requires | node.uses)) if node else (),
            dependents=dependents,
            calls=len(host.calls) if host else 0,
            tasks=tuple(node.tasks) if node else (),
        )

    def _internal(self, node: NodeStatus, nodes: Mapping[str, NodeStatus], dependents: tuple[str, ...]) -> NodeView:
        return NodeView(
            name=node.name,
            state=state_of(node).value,
            reason=self.explain(node, nodes) or (self.parts.remotes.path_of(node.name) if self.parts.remotes else ""),
            since=_utc(since_of(node)),
            restarts=max(0, node.runs - 1),
            dependencies=tuple(sorted(node.requires | node.uses)),
            dependents=dependents,
        )


def _dependents(nodes: Iterable[NodeStatus]) -> dict[str, tuple[str, ...]]:
    dependents: dict[str, list[str]] = {}
    for node in nodes:
        for name in node.requires | node.uses:
            dependents.setdefault(name, []).append(node.name)
    return {name: tuple(sorted(names)) for name, names in dependents.items()}


def _utc(since: float) -> datetime:
    """Convert a time of Trio's clock to UTC."""
    return datetime.now(UTC) - timedelta(seconds=trio.current_time() - since)


def _page_of(cloud: Cloud | None) -> str:
    """Return the URL of the machine's page in its cloud; "" if the cloud is another program, which names no machine."""
    if cloud is None or not cloud.machine_name or not cloud.app_address.startswith(("http://", "https://")):
        return ""
    return f"{cloud.app_address.rstrip('/')}/machines/{quote(cloud.id, safe='')}"

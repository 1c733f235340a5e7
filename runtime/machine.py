"""Machine: the one object that pages, RPC and the command line are views of.

It holds the graph and what hangs on it, knows which configuration is in force, and answers questions. It starts
nothing: `runtime.app` composes it, `runtime.configuration` feeds it.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import structlog
import trio

from hal.ports.hardware import Hardware
from hal.sim import World
from nursery_graph import Graph, NodeStatus, State
from rpc.statistics import Statistics
from runtime.host import ResourceHost
from runtime.jobs.job import History
from runtime.maintenance import Decision
from runtime.metrics.calls import Calls
from runtime.metrics.spans import Tracer
from runtime.operations import Operations
from runtime.options import Options
from runtime.reasons import reason_of
from runtime.reconfigure import Wanted
from runtime.registry import Registry
from runtime.sessions import Sessions
from runtime.status import (
    ConfigStatus,
    DownloadStatus,
    JobStatus,
    MachineState,
    MachineStatus,
    ModuleStatus,
    NodeView,
    ResourceStatus,
)
from runtime.tunnel.tunnels import Tunnels
from runtime.version import version
from schema.errors import ErrorKind, MachineError
from schema.jobs import Job
from schema.machine import MachineDocument
from schema.names import API, ResourceName
from schema.report import did_you_mean
from schema.secrets import Masker
from telemetry.activity import tell
from telemetry.ring import LogRing

if TYPE_CHECKING:
    from rpc.tls import Context
    from runtime.cloud.link import CloudLink
    from runtime.modules.manager import Modules
    from runtime.parts import Part
    from runtime.remotes.manager import Remotes

_MODULE_STATES: Final = {
    State.UNCONFIGURED: "pending",
    State.CONFIGURING: "starting",
    State.READY: "ready",
    State.UNHEALTHY: "unhealthy",
    State.REMOVING: "closing",
}

INTERNAL: Final = "internal/"  # node names of the server's own parts


class Machine:
    """One machine-server.

    `graph` runs everything; `registry` finds drivers; `world` is the simulated bench; `hardware` is what drivers open;
    `log_ring` keeps the newest log entries; `operations` and `sessions` are those of all clients. `document` is the
    configuration in force.
    """

    def __init__(
        self,
        options: Options,
        *,
        registry: Registry,
        graph: Graph,
        log_ring: LogRing,
        world: World,
        hardware: Hardware,
    ) -> None:
        self.options = options
        self.registry = registry
        self.graph = graph
        self.log_ring = log_ring
        self.world = world
        self.hardware = hardware
        self.log: structlog.stdlib.BoundLogger = structlog.get_logger("rdk")
        self.operations = Operations()
        self.sessions = Sessions(self._client_vanished)
        self.tracer = Tracer()
        self.calls = Calls(self.tracer)  # what every call to this machine has cost
        self.rpc_statistics = Statistics()  # of its port
        self.tunnels = Tunnels()
        self.instance = str(uuid.uuid4())  # tells this process from other machines, for those that have it as a remote
        self.document = MachineDocument()
        self.masker = Masker()  # of the secrets that documents had so far
        self.wanted: Mapping[str, Wanted] = {}
        self.aliases: Mapping[str, tuple[str, ...]] = {}  # what remote resources may be called for short, by full name
        self.cloud: CloudLink | None = None  # of a machine that was started with credentials of one
        self.parts: dict[str, Part] = {}  # what documents have needed so far, by the names of runtime.parts
        self.jobs: dict[str, History] = {}  # of each configured job, by name
        self.downloads: dict[str, DownloadStatus] = {}  # of packages that are on their way, by their contents
        self.hosts: dict[str, ResourceHost] = {}  # open for calls, by full name
        self.config = ConfigStatus(source=str(options.config), revision="", last_updated=None)
        self.state = MachineState.INITIALIZING
        self.started = datetime.now(UTC)
        self.addresses: tuple[str, ...] = ()
        self.tls: Context | None = None  # of its port
        self.maintenance = Decision(False, "not asked yet")  # as last decided, at most RETRY_INTERVAL ago
        self.ask_maintenance: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint  # decide anew now
        self.reconfiguring = True  # a document is being applied
        self.running = trio.Event()  # everything that was configured at the start was tried once
        self.stopping = trio.Event()  # somebody asked for an orderly stop
        self.stop_reason = ""
        self.failed = False  # it stops because it could not start

    @property
    def secure(self) -> bool:
        """Whether other computers reach the port by TLS."""
        return self.tls is not None and self.tls.context is not None

    # ---- resources

    def find(self, name: str) -> ResourceHost:
        """The host of a ready resource, by full or simple name.

        Raises MachineError: NOT_FOUND with near names, INVALID if a simple name means several, UNAVAILABLE with state
        and reason if it is configured but not ready.
        """
        if (host := self.hosts.get(name)) is not None:
            return host
        if name in self.wanted:
            raise self.not_ready(name)
        meant = [full for full, wanted in self.wanted.items() if wanted.name.short == name]
        meant = meant or [*self.aliases.get(name, ())]
        meant = meant or [
            one for full, found in self.aliases.items() if full.partition("/")[2] == name for one in found
        ]
        if len(meant) > 1:
            raise MachineError(
                f"{name!r} may be {' or '.join(meant)}", kind=ErrorKind.INVALID, remedy="give the full name"
            )
        if meant:
            return self.find(meant[0])
        known = self.wanted if "/" in name else {wanted.name.short for wanted in self.wanted.values()}
        raise MachineError(
            f"no resource {name!r} is configured", kind=ErrorKind.NOT_FOUND, remedy=did_you_mean(name, known)
        )

    def not_ready(self, full: str) -> MachineError:
        """Why a configured resource cannot be called now."""
        nodes = self.graph.snapshot().nodes
        status = nodes.get(full)
        if status is None:
            return MachineError(f"{full} is not started yet", kind=ErrorKind.UNAVAILABLE, remedy="try again later")
        if status.state is State.READY:  # its door is closed already: it is about to stop
            return MachineError(f"{full} is stopping", kind=ErrorKind.UNAVAILABLE, remedy="try again later")
        reason = self._reason(status, nodes)
        return MachineError(
            f"{full} is {status.state.value}{f': {reason}' if reason else ''}", kind=ErrorKind.UNAVAILABLE
        )

    def resource_names(self) -> list[ResourceName]:
        """Every ready resource in order of name; never waits."""
        return sorted(host.name for host in self.hosts.values())

    def hosts_of(self, api: API) -> dict[ResourceName, ResourceHost]:
        """The ready resources of an API, those of remotes included."""
        return {host.name: host for host in self.hosts.values() if host.name.api == api}

    def host_changed(self, host: ResourceHost, is_open: bool) -> None:
        """A host opened or closed its door."""
        if is_open:
            self.hosts[str(host.name)] = host
        elif self.hosts.get(str(host.name)) is host:
            del self.hosts[str(host.name)]

    @property
    def modules(self) -> Modules | None:
        """Its modules; None on a machine that never had any."""
        return cast("Modules | None", self.parts.get("modules"))

    @property
    def remotes(self) -> Remotes | None:
        """Its remotes; None on a machine that never had any."""
        return cast("Remotes | None", self.parts.get("remotes"))

    # ---- life

    def request_stop(self, reason: str) -> None:
        """Ask for an orderly stop of the whole server; returns at once. The first reason is kept."""
        if not self.stopping.is_set():
            self.stop_reason = reason
            self.state = MachineState.STOPPING
            self.stopping.set()

    def note_config(self, **facts: Any) -> None:
        """Change what the status says of the configuration; the keywords are fields of ConfigStatus."""
        self.config = replace(self.config, **facts)

    async def _client_vanished(self, session: Any, resources: tuple[str, ...]) -> None:
        from runtime.stop import stop_resources

        tell("session", "liveness_expired", session=session.id, resources=list(resources))
        say, what = (self.log.info, "closed its connection") if session.closed else (self.log.warning, "vanished")
        say(f"client {what}: stopping what it commanded", session=session.id, resources=list(resources))
        for name, error in (await stop_resources(self, resources)).items():
            self.log.error("could not be stopped", resource=name, error=str(error))

    # ---- what it shows

    def status(self) -> MachineStatus:
        """Everything at once, consistent: nothing is awaited while it is gathered."""
        nodes = self.graph.snapshot().nodes
        dependents = _dependents(nodes.values())
        resources = [
            self._resource(name, wanted, nodes, dependents.get(name, ())) for name, wanted in self.wanted.items()
        ]
        resources += [
            self._resource(name, None, nodes, dependents.get(name, ()))
            for name in nodes
            if name not in self.wanted and not name.startswith(INTERNAL)
        ]  # being removed
        return MachineStatus(
            host=socket.gethostname(),
            version=version(),
            state=self.state,
            started=self.started,
            restart_allowed=self.maintenance.allowed and not self.reconfiguring,
            maintenance=self.maintenance.reason if self.document.maintenance is not None else "",
            config=self.config,
            resources=tuple(sorted(resources, key=lambda one: one.name)),
            internal=tuple(
                self._internal(node, nodes, dependents.get(name, ()))
                for name, node in sorted(nodes.items())
                if name.startswith(INTERNAL)
            ),
            sessions=self.sessions.status(),
            operations=tuple(operation.status() for operation in self.operations.running()),
            addresses=self.addresses,
            secure=self.secure,
            modules=self._modules(nodes),
            jobs=tuple(self._job(job) for job in self.document.jobs if job.name in self.jobs),
            downloads=tuple(self.downloads.values()),
        )

    def _modules(self, nodes: Mapping[str, NodeStatus]) -> tuple[ModuleStatus, ...]:
        found = []
        for link in self.modules.links.values() if self.modules is not None else ():
            node = nodes.get(link.node)
            found.append(
                ModuleStatus(
                    name=link.module.name,
                    state=_MODULE_STATES[node.state] if node else "pending",
                    reason=self._reason(node, nodes) if node else "",
                    since=_wall(node.since) if node else self.started,
                    node=link.node,
                    consecutive_failures=link.failures,
                    models=tuple(sorted({str(model) for _, model in link.offers})),
                )
            )
        return tuple(found)

    def _job(self, job: Job) -> JobStatus:
        history = self.jobs[job.name]
        return JobStatus(
            name=job.name,
            schedule=job.schedule,
            resource=job.resource,
            method=job.method,
            running=history.running,
            next_run=history.next_run,
            succeeded=tuple(history.succeeded),
            failed=tuple(history.failed),
            last_error=history.last_error,
        )

    def _resource(
        self, name: str, wanted: Wanted | None, nodes: Mapping[str, NodeStatus], dependents: tuple[str, ...]
    ) -> ResourceStatus:
        node = nodes.get(name)
        api, _, _ = name.partition("/")
        host = self.hosts.get(name)
        return ResourceStatus(
            name=name,
            api=api,
            model=wanted.model if wanted else "",
            state=node.state.value if node else "unconfigured",
            reason=self._reason(node, nodes) if node else "",
            since=_wall(node.since) if node else self.started,
            revision=node.revision if node else "",
            restarts=max(0, node.runs - 1) if node else 0,
            dependencies=tuple(sorted(node.requires | node.uses)) if node else (),
            dependents=dependents,
            calls=len(host.calls) if host else 0,
            tasks=tuple(node.tasks) if node else (),
        )

    def _reason(self, node: NodeStatus, nodes: Mapping[str, NodeStatus]) -> str:
        """Return why a node is in its state, with secrets masked: errors of drivers may quote their attributes."""
        modules = self.modules
        link = modules.links.get(node.name.rpartition("/")[2]) if modules is not None else None
        if link is not None and link.node == node.name and node.state in (State.UNCONFIGURED, State.CONFIGURING):
            return self.masker.text(link.waiting)
        not_ready = modules.not_ready() if modules is not None and node.state is not State.READY else {}
        return self.masker.text(reason_of(node, self.wanted, nodes, not_ready))

    def _internal(self, node: NodeStatus, nodes: Mapping[str, NodeStatus], dependents: tuple[str, ...]) -> NodeView:
        return NodeView(
            name=node.name,
            state=node.state.value,
            reason=self._reason(node, nodes),
            since=_wall(node.since),
            restarts=max(0, node.runs - 1),
            dependencies=tuple(sorted(node.requires | node.uses)),
            dependents=dependents,
        )


def _dependents(nodes: Iterable[NodeStatus]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for node in nodes:
        for name in node.requires | node.uses:
            found.setdefault(name, []).append(node.name)
    return {name: tuple(sorted(names)) for name, names in found.items()}


def _wall(since: float) -> datetime:
    """A time of Trio's clock as a time of day."""
    return datetime.now(UTC) - timedelta(seconds=trio.current_time() - since)

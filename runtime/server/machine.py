"""Machine: the records of one machine-server. Its parts and the engine receive the records that they need.

It starts nothing: `runtime.server.app` composes it, `runtime.server.configuration` feeds it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import structlog

from engine import Bench, CloudAccess, Lifecycle, Options, PartContext, Registry, Roster
from engine.calls import Calls, Operations, Sessions, Tracer, Traffic, stop_resources
from engine.metrics import History, Sampler
from engine.planning import reason_of
from nursery_graph import Graph, NodeStatus, State
from rpc import Statistics
from runtime.parts.tunnel.tunnels import Tunnels
from runtime.server.configured import Configured
from runtime.server.endpoint import Endpoint
from runtime.server.parts import Parts
from runtime.server.report import StatusReport
from telemetry.logs import LogRing, log_event

if TYPE_CHECKING:
    from rpc import Router

MAX_REASON: Final = 4096  # characters of the reason for a state: errors of modules may be long


class Machine:
    """A machine-server.

    `graph` runs everything; `registry` finds drivers; `bench` is what drivers open; `log_ring` keeps the newest log
    entries; `traffic` is that of all clients; `cloud` is None unless it was started with credentials of one.
    """

    def __init__(
        self,
        options: Options,
        *,
        registry: Registry,
        graph: Graph,
        log_ring: LogRing,
        bench: Bench,
        cloud: CloudAccess | None = None,
    ) -> None:
        self.options = options
        self.registry = registry
        self.graph = graph
        self.log_ring = log_ring
        self.bench = bench
        self.cloud = cloud
        self.log: structlog.stdlib.BoundLogger = structlog.get_logger("rdk")
        self.lifecycle = Lifecycle()
        self.configured = Configured(str(options.config))
        self.endpoint = Endpoint(options.address_file)
        self.parts = Parts(options)
        self.roster = Roster(graph, self.reason, lambda: self.configured.document)
        self.traffic = Traffic(Operations(), Sessions(self._client_vanished), Calls(Tracer()), Statistics())
        self.tunnels = Tunnels()
        self.instance = str(uuid.uuid4())  # identifies this process to machines that have it as a remote
        self.sample = Sampler(graph, self.roster, self.traffic, self.pids).sample
        self.history = History()
        self.status = StatusReport(
            graph, self.roster, self.traffic, self.lifecycle, self.configured, self.endpoint, self.parts, self.reason
        ).status

    def reason(self, node: NodeStatus, nodes: Mapping[str, NodeStatus]) -> str:
        """Return why a node is in its state, with secrets masked: errors of drivers may quote their attributes."""
        modules = self.parts.modules
        link = modules.links.get(node.name.rpartition("/")[2]) if modules is not None else None
        if link is not None and link.node == node.name and node.state in (State.UNCONFIGURED, State.CONFIGURING):
            return self.configured.masker.shortened(link.waiting, MAX_REASON)
        not_ready = modules.not_ready() if modules is not None and node.state is not State.READY else {}
        return self.configured.masker.shortened(reason_of(node, self.roster.planned, nodes, not_ready), MAX_REASON)

    def pids(self) -> Mapping[str, int]:
        """Return the processes of the modules that run, by name."""
        links = self.parts.modules.links if self.parts.modules is not None else {}
        return {name: link.pid for name, link in links.items() if link.pid is not None}

    def part_context(self, router: Router, environment: Mapping[str, str], changed: Callable[[], None]) -> PartContext:
        """Return what the parts of this machine are constructed with."""
        return PartContext(
            options=self.options,
            environment=environment,
            graph=self.graph,
            roster=self.roster,
            router=router,
            hardware=self.bench.hardware,
            tracer=self.traffic.calls.tracer,
            sample=self.sample,
            history=self.history,
            cloud=self.cloud,
            instance=self.instance,
            log=self.log,
            stopping=self.lifecycle.stopping,
            parts=self.parts.present,
            changed=changed,
        )

    async def _client_vanished(self, session: Any, resources: tuple[str, ...]) -> None:
        log_event("session", "liveness_expired", session=session.id, resources=list(resources))
        if session.closed:
            log, event = self.log.info, "a client closed its connection"
        else:
            log, event = self.log.warning, "a client vanished"
        log(f"{event}: stopping the resources that it used", session=session.id, resources=list(resources))
        for name, error in (await stop_resources(self.roster, resources)).items():
            self.log.error("a resource could not be stopped", resource=name, error=str(error))

"""The resources of a module, each a node of a graph, with the same lifecycle as built-in resources in the machine."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import structlog
import trio

from engine import ResourceHost
from engine.planning import PlannedResource
from hal import Hardware
from hal.sim import World
from nursery_graph import Graph, Node, Restart, State
from runtime.sdk.entries import read_attributes
from runtime.sdk.offers import OfferedDrivers
from runtime.sdk.parent import NODE as PARENT
from runtime.sdk.parent import Parent, parent_host
from schema import ConfigError, ErrorKind, MachineError, ResourceName
from schema.decoding import did_you_mean
from schema.document import ResourceEntry
from telemetry.logs.logger_names import of_resource

STOP_LIMIT: Final = 20.0  # seconds to stop; the machine waits the same time for a reply
RESTART: Final = Restart(kind="permanent", intensity=1_000_000, first_delay=0.5, max_delay=10.0)
_versions = itertools.count(1)


class AddedResource:
    """A resource that the machine has added."""

    def __init__(self, entry: ResourceEntry, planned: PlannedResource, from_machine: frozenset[ResourceName]) -> None:
        self.entry = entry
        self.planned = planned
        self.from_machine = from_machine  # dependencies that run in the machine
        self.settled = trio.Event()  # set when it is ready, has failed, or was removed
        self.failure: BaseException | None = None

    def end(self, failure: BaseException) -> None:
        """Record that it will not become ready."""
        if not self.settled.is_set():
            self.failure = failure
            self.settled.set()


class Resources:
    """The resources that the machine has added to `graph`. `changed` is called when they change."""

    def __init__(
        self,
        graph: Graph,
        offers: OfferedDrivers,
        parent: Parent,
        *,
        world: World,
        hardware: Hardware,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.offers = offers
        self._graph = graph
        self._parent = parent
        self._world = world
        self._hardware = hardware
        self.others: tuple[Node, ...] = ()  # other nodes of the graph
        self._changed = changed
        self._added: dict[str, AddedResource] = {}
        self._hosts: dict[str, ResourceHost] = {}  # open for calls
        self._log = structlog.get_logger("rdk.module")

    @property
    def entries(self) -> list[ResourceEntry]:
        """The entries of all added resources."""
        return [added.entry for added in self._added.values()]

    async def add(self, entry: ResourceEntry, dependencies: Iterable[ResourceName]) -> None:
        """Add or replace a resource; returns when it is ready.

        Raises the errors of its driver. On an error or cancellation, the resource is removed again.
        """
        cls, attributes, warnings = read_attributes(entry, self.offers)
        for warning in warnings:
            self._log.warning("problem in the configuration", resource=str(entry.name), problem=str(warning))
        names = set(dependencies) - {entry.name}
        own = frozenset(str(name) for name in names if str(name) in self._added)
        planned = PlannedResource(
            name=entry.name,
            path="",
            model=str(entry.model),
            version=next(_versions),
            requires=frozenset(map(str, names)) | {PARENT},
            cls=cls,
            attributes=attributes,
        )
        added = AddedResource(entry, planned, frozenset(name for name in names if str(name) not in own))
        self._replace(str(entry.name), added)
        try:
            await added.settled.wait()
            if added.failure is not None:
                raise added.failure
        except BaseException:
            if self._added.get(str(entry.name)) is added:
                self._replace(str(entry.name), None)
            raise

    async def remove(self, name: str) -> None:
        """Stop a resource and its dependents here; returns when it has stopped. MachineError if it does not exist."""
        full = (
            name
            if name in self._added
            else next((full_name for full_name in self._added if full_name.endswith(f"/{name}")), None)
        )
        if full is None:
            raise MachineError(
                f"this module has no resource {name!r}",
                kind=ErrorKind.NOT_FOUND,
                remedy=did_you_mean(name, self._added) or "it has no resources",
            )
        self._replace(full, None)
        async for snapshot in self._graph.changes():
            if full not in snapshot.nodes or full in self._added:
                return

    def find(self, full: str) -> ResourceHost:
        """Return the host of a ready resource; raises MachineError: NOT_FOUND, or UNAVAILABLE with the reason."""
        host = self._hosts.get(full)
        if host is not None:
            return host
        if full not in self._added:
            raise MachineError(
                f"this module has no {full}", kind=ErrorKind.NOT_FOUND, remedy=did_you_mean(full, self._added)
            )
        status = self._graph.snapshot().nodes.get(full)
        reason = f": {status.reason}" if status is not None and status.reason else ""
        state = status.state.value if status is not None and status.state is not State.READY else "stopping"
        raise MachineError(f"{full} is {state}{reason}", kind=ErrorKind.UNAVAILABLE)

    def give_up(self, reason: str) -> None:
        """Fail the resources that are not ready yet, because the module stops."""
        for full, added in self._added.items():
            added.end(MachineError(f"{full} was not ready yet: {reason}", kind=ErrorKind.UNAVAILABLE))

    def apply(self) -> None:
        """Apply the added resources to the graph."""
        from_machine = {name for added in self._added.values() for name in added.from_machine}
        self._graph.apply(
            [
                *self.others,
                *(self._machine_node(name) for name in sorted(from_machine) if str(name) not in self._added),
                *(self._node(full, added) for full, added in self._added.items()),
            ]
        )

    def _replace(self, full: str, added: AddedResource | None) -> None:
        previous = self._added.pop(full, None)
        if previous is not None:
            previous.end(MachineError(f"{full} was removed or replaced", kind=ErrorKind.CANCELLED))
        if added is not None:
            self._added[full] = added
        self._changed()
        self.apply()

    def _node(self, full: str, added: AddedResource) -> Node:
        return Node(
            full,
            partial(self._live, added),
            requires=added.planned.requires,
            version=added.planned.version,
            start_timeout=float("inf"),  # the machine sets the limit, and cancels
            stop_timeout=STOP_LIMIT,
            restart=RESTART,
        )

    def _machine_node(self, name: ResourceName) -> Node:
        host = parent_host(name, self._parent, self._world, self._hardware)

        async def run(deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[ResourceHost]) -> None:
            await host.run(deps, task_status=task_status)

        return Node(str(name), run, requires={PARENT}, version="of the machine")

    async def _live(
        self, added: AddedResource, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[ResourceHost]
    ) -> None:
        log = structlog.get_logger(of_resource(added.entry.name))
        host = ResourceHost(
            added.planned,
            world=self._world,
            hardware=self._hardware,
            log=log,
            changed=partial(self._host_changed, added),
        )
        try:
            await host.run(deps, task_status=task_status)
        except Exception as error:
            if added.settled.is_set():
                log.error("failed; it will be restarted", reason=str(error) or repr(error))
            added.end(_error_for_machine(error, log))
            raise

    def _host_changed(self, added: AddedResource, host: ResourceHost, is_open: bool) -> None:
        full = str(host.name)
        if is_open:
            self._hosts[full] = host
            added.settled.set()
        elif self._hosts.get(full) is host:
            del self._hosts[full]


def _error_for_machine(error: Exception, log: structlog.stdlib.BoundLogger) -> Exception:
    """Return the error for the machine: a MachineError unchanged, others by class name, with their traceback logged."""
    if isinstance(error, MachineError | ConfigError):
        return error
    log.error("could not be created", exc_info=error)
    return MachineError(f"{type(error).__name__}: {error}", kind=ErrorKind.INTERNAL)

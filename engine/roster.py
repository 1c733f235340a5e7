"""The resources of a machine: those that its document asks for, and those that are open for calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from engine.host import ResourceHost
from engine.planning.reconfigure import PlannedResource
from engine.resource import no_document
from nursery_graph import Graph, NodeStatus, State
from schema import API, ErrorKind, MachineError, ResourceName
from schema.decoding import did_you_mean

if TYPE_CHECKING:
    from schema.document import MachineDocument

Explain = Callable[[NodeStatus, Mapping[str, NodeStatus]], str]
"""Why a node is in its state, given all nodes by name."""


class Roster:
    """`planned` and `hosts` are by full name; `aliases` are the short names of resources of remotes.

    `document` returns the configuration in force.
    """

    def __init__(self, graph: Graph, explain: Explain, document: Callable[[], MachineDocument] = no_document) -> None:
        self.planned: Mapping[str, PlannedResource] = {}
        self.aliases: Mapping[str, tuple[str, ...]] = {}
        self.hosts: dict[str, ResourceHost] = {}  # open for calls
        self.document = document
        self._graph = graph
        self._explain = explain

    def find(self, name: str) -> ResourceHost:
        """Return the host of a ready resource, by full or simple name.

        Raises MachineError: NOT_FOUND with near names, INVALID if a simple name means several, UNAVAILABLE with state
        and reason if it is configured but not ready.
        """
        if (host := self.hosts.get(name)) is not None:
            return host
        if name in self.planned:
            raise self.not_ready(name)
        matches = [full for full, resource in self.planned.items() if resource.name.short == name]
        matches = matches or [*self.aliases.get(name, ())]
        matches = matches or [
            target for full, targets in self.aliases.items() if full.partition("/")[2] == name for target in targets
        ]
        if len(matches) > 1:
            raise MachineError(
                f"{name!r} may be {' or '.join(matches)}", kind=ErrorKind.INVALID, remedy="use the full name"
            )
        if matches:
            return self.find(matches[0])
        candidates = self.planned if "/" in name else {resource.name.short for resource in self.planned.values()}
        raise MachineError(
            f"no resource {name!r} is configured", kind=ErrorKind.NOT_FOUND, remedy=did_you_mean(name, candidates)
        )

    def not_ready(self, full: str) -> MachineError:
        """Return why a configured resource cannot be called now."""
        nodes = self._graph.snapshot().nodes
        status = nodes.get(full)
        if status is None:
            return MachineError(f"{full} is not started yet", kind=ErrorKind.UNAVAILABLE, remedy="try again later")
        if status.state is State.READY:  # its door is closed already: it is about to stop
            return MachineError(f"{full} is stopping", kind=ErrorKind.UNAVAILABLE, remedy="try again later")
        reason = self._explain(status, nodes)
        return MachineError(
            f"{full} is {status.state.value}{f': {reason}' if reason else ''}", kind=ErrorKind.UNAVAILABLE
        )

    def names(self) -> list[ResourceName]:
        """Return the names of all ready resources, sorted."""
        return sorted(host.name for host in self.hosts.values())

    def hosts_of(self, api: API) -> dict[ResourceName, ResourceHost]:
        """Return the ready resources of an API, those of remotes included."""
        return {host.name: host for host in self.hosts.values() if host.name.api == api}

    def host_changed(self, host: ResourceHost, is_open: bool) -> None:
        """Note that a host opened or closed its door."""
        if is_open:
            self.hosts[str(host.name)] = host
        elif self.hosts.get(str(host.name)) is host:
            del self.hosts[str(host.name)]

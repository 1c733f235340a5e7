"""Explains the states of nodes to people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from engine.planning.reconfigure import PlannedResource, blame_modules
from nursery_graph import NodeStatus, State
from schema import MachineError


def state_of(node: NodeStatus) -> State:
    """Return the state that people and programs see: a node that is retried after a failure is unhealthy until it
    is ready. Otherwise its health would change with each attempt."""
    return State.UNHEALTHY if node.state is State.CONFIGURING and node.failure else node.state


def since_of(node: NodeStatus) -> float:
    """Return since when a node is in the state that people see, on Trio's clock."""
    unhealthy = state_of(node) is State.UNHEALTHY
    return node.failed_since if unhealthy and node.failed_since is not None else node.since


def reason_of(
    node: NodeStatus,
    planned: Mapping[str, PlannedResource] = MappingProxyType({}),
    nodes: Mapping[str, NodeStatus] = MappingProxyType({}),
    modules: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return why a node is in its state: the fault of its entry if it is `planned`, or the graph's reason.

    A node that is retried shows why its last run failed. The result has no class names. If the node waits for
    one of `modules` (those that are not ready, by node, with the reason) or for an unhealthy one of `nodes`, it
    includes the reason of that.
    """
    entry = planned.get(node.name)
    if entry is not None and entry.unknown is not None:
        return str(blame_modules(entry.unknown, modules))
    if entry is not None and entry.fault is not None:
        return str(entry.fault)
    for name in node.waiting_for:
        if name in modules:
            return f"waiting for {name}: {modules[name]}"
        awaited = nodes.get(name)
        if awaited is not None and state_of(awaited) is State.UNHEALTHY:
            return f"waiting for {name}: {reason_of(awaited, planned)}"
    if node.state is State.CONFIGURING and node.failure and not node.reason:
        return plain(node.failure)
    return plain(node.reason)


def plain(reason: str) -> str:
    """Return a reason of the graph without the class names of MachineErrors."""
    return "; ".join(_without_class(part) for part in reason.split("; "))


def _without_class(reason: str) -> str:
    """Return a reason without the name of a class derived from MachineError in front of it."""
    word, colon, rest = reason.partition(": ")
    return rest if colon and word in _error_names() else reason


def _error_names() -> set[str]:
    """Return the names of all classes derived from MachineError that are loaded."""
    classes: list[type[MachineError]] = [MachineError]
    for cls in classes:
        classes += cls.__subclasses__()
    return {cls.__name__ for cls in classes}

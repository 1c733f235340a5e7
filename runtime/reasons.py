"""Why nodes are in their states, in words for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nursery_graph import NodeStatus, State
from runtime.reconfigure import Wanted
from schema.errors import MachineError


def reason_of(
    node: NodeStatus,
    wanted: Mapping[str, Wanted] = MappingProxyType({}),
    nodes: Mapping[str, NodeStatus] = MappingProxyType({}),
) -> str:
    """Why a node is in its state, for people: the fault of its entry if it is `wanted`, or what the graph says without
    class names.

    Of what it waits for among `nodes`, a module or another resource, the reason is told, too.
    """
    entry = wanted.get(node.name)
    if entry is not None and entry.fault is not None:
        return str(entry.fault)
    for name in node.waiting_for:
        awaited = nodes.get(name)
        if awaited is not None and awaited.state is State.UNHEALTHY:
            return f"waiting for {name}: {reason_of(awaited, wanted)}"
    return plain(node.reason)


def plain(reason: str) -> str:
    """What the graph says, without the class names of errors that are meant for people."""
    return "; ".join(_without_class(part) for part in reason.split("; "))


def _without_class(reason: str) -> str:
    """A reason without the name of an error that is meant for people, of any class derived from MachineError."""
    word, colon, rest = reason.partition(": ")
    return rest if colon and word in _error_names() else reason


def _error_names() -> set[str]:
    """The names of all classes of MachineError that there are by now."""
    classes: list[type[MachineError]] = [MachineError]
    for cls in classes:
        classes += cls.__subclasses__()
    return {cls.__name__ for cls in classes}

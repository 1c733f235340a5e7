"""The live parts of the pages, and the facts that they show. Pure: see rpc.pages.patches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from engine.views import MachineStatus, NodeView, ResourceStatus, health_word, is_failing
from rpc.pages import MISSING, Drawing, Piece, Vertex, full_name, structure
from rpc.pages import drawing as drawn
from support.text import words


@dataclass(frozen=True, slots=True)
class NodePiece:
    """A resource or a part of the server."""

    name: str
    state: str
    reason: str
    since: datetime
    restarts: int
    dependencies: tuple[str, ...]
    dependents: tuple[str, ...]
    model: str = ""
    revision: str = ""
    calls: int = 0
    tasks: tuple[str, ...] = ()


def resources(status: MachineStatus) -> tuple[NodePiece, ...]:
    """Return all configured resources."""
    return tuple(
        replace(_node(entry), model=entry.model, revision=entry.revision, calls=entry.calls, tasks=entry.tasks)
        for entry in status.resources
    )


def failing(status: MachineStatus) -> tuple[NodePiece, ...]:
    """Return the resources that count as problems of the machine; those that wait for others come last."""
    names = {entry.name for entry in status.resources if is_failing(entry, status.state)}
    broken = (node for node in resources(status) if node.name in names)
    return tuple(sorted(broken, key=lambda node: node.state != "unhealthy"))


def internal(status: MachineStatus) -> tuple[NodePiece, ...]:
    """Return all parts of the server."""
    return tuple(_node(view) for view in status.internal)


def modules(status: MachineStatus) -> tuple[NodePiece, ...]:
    """Return the parts of the server that run modules."""
    nodes = {node.name: node for node in internal(status)}
    return tuple(nodes[module.node] for module in status.modules if module.node in nodes)


def parts(status: MachineStatus) -> tuple[NodePiece, ...]:
    """Return the parts of the server that do not run modules."""
    shown = {module.node for module in status.modules}
    return tuple(node for node in internal(status) if node.name not in shown)


def overview(status: MachineStatus) -> list[Piece]:
    """Return the live parts of the overview."""
    facts = (
        status.state, status.addresses, len(status.sessions), len(status.operations), status.restart_allowed,
        status.maintenance, status.name, status.page, health_word(status),
        status.config.source, status.config.revision, status.config.last_updated,
    )  # fmt: skip
    configured = resources(status)
    broken = failing(status)
    counted = tuple(node.state for node in configured)
    pieces = [
        Piece("summary", "summary", (status,), facts),
        Piece("problems", "problems", (status.config, broken, status.page), (status.config, broken, status.page)),
        Piece("downloads", "downloads", (status.downloads,), status.downloads),
        Piece("counts", "counts", (configured,), counted),
    ]
    for table, nodes in (
        ("resources", configured),
        ("modules", modules(status)),
        ("internal", parts(status)),
    ):
        pieces.append(Piece(table, "table", (nodes, table), tuple(node.name for node in nodes)))
        pieces += [Piece(words.dom_id(node.name), "row", (node,), node, inside=table) for node in nodes]
    picture = drawing(status)
    pieces.append(Piece("graph", "graph", (picture,), structure(_vertices(status))))
    pieces += [Piece(item.id, "box", (item,), item, inside="graph") for item in picture.items]
    return pieces


def resource(status: MachineStatus, name: str) -> list[Piece]:
    """Return the live parts of a resource's page; empty if the resource does not exist any more."""
    node = find(status, name)
    if node is None:
        return []
    needs, needed = links(status, node.dependencies), links(status, node.dependents)
    return [
        Piece("head", "resource_head", (node,), node),
        Piece("dependencies", "links", ("dependencies", "Depends on", needs), needs),
        Piece("dependents", "links", ("dependents", "Needed by", needed), needed),
    ]


def find(status: MachineStatus, name: str) -> NodePiece | None:
    """Return the node with this full name, or the only resource with this simple name; else None."""
    configured = resources(status)
    exact = [node for node in (*configured, *internal(status)) if node.name == name]
    matching = exact or [node for node in configured if words.short(node.name) == name]
    return matching[0] if len(matching) == 1 else None


def links(status: MachineStatus, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the full names and the states of dependencies or dependents."""
    states = _states(status)
    return tuple((full, states.get(full, MISSING)) for full in (full_name(name, states) for name in names))


def drawing(status: MachineStatus) -> Drawing:
    """Return the graph of resources and parts of the server. Missing dependencies are drawn as missing."""
    return drawn(_vertices(status))


def _vertices(status: MachineStatus) -> list[Vertex]:
    nodes = (*resources(status), *internal(status))
    return [Vertex(node.name, node.state, node.reason, node.dependencies) for node in nodes]


def _node(view: ResourceStatus | NodeView) -> NodePiece:
    # Rounded to seconds: each status computes the time of an event again, with differences of microseconds.
    since = (view.since + timedelta(milliseconds=500)).replace(microsecond=0)
    return NodePiece(view.name, view.state, view.reason, since, view.restarts, view.dependencies, view.dependents)


def _states(status: MachineStatus) -> Mapping[str, str]:
    return {node.name: node.state for node in (*resources(status), *internal(status))}

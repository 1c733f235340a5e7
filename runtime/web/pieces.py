"""Which parts of a page are live, and which of them must be sent again when the facts have changed. Pure.

A piece is one macro of the templates with what it shows; its first element has the piece's id. The browser replaces the
element of that id. What a client was sent last is kept as facts, not as HTML, so that nothing unchanged is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, TypeAlias

from runtime.status import MachineStatus, NodeView, ResourceStatus
from runtime.web import words
from runtime.web.layout import BOX_HEIGHT, BOX_WIDTH, Edge, Layout, layout

MISSING: Final = "missing"
"""Shown as the state of a name that something depends on and nobody configured."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A live part: its element's id, its macro and arguments, and the facts that decide whether it must be sent."""

    id: str
    macro: str
    arguments: tuple[object, ...]
    facts: object
    inside: str = ""  # id of the piece that contains it


@dataclass(frozen=True, slots=True)
class Item:
    """One box of the graph."""

    id: str
    name: str
    kind: str
    state: str
    reason: str
    x: float
    y: float
    width: float = BOX_WIDTH
    height: float = BOX_HEIGHT


@dataclass(frozen=True, slots=True)
class Drawing:
    """The graph, ready for the template."""

    width: float
    height: float
    items: tuple[Item, ...]
    edges: tuple[Edge, ...]


class Patcher:
    """What one client has; `patch` gives what it lacks."""

    def __init__(self, render: Callable[[Piece], str]) -> None:
        self._render = render
        self._sent: dict[str, object] = {}

    def patch(self, pieces: Iterable[Piece]) -> dict[str, str]:
        """HTML by id of every piece whose facts differ from those sent before; containers come first."""
        html: dict[str, str] = {}
        sent: dict[str, object] = {}
        for piece in pieces:
            sent[piece.id] = piece.facts
            if piece.inside not in html and (piece.id not in self._sent or self._sent[piece.id] != piece.facts):
                html[piece.id] = self._render(piece)
        self._sent = sent
        return html


@dataclass(frozen=True, slots=True)
class Node:
    """A resource or a part of the server, in one shape."""

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


def resources(status: MachineStatus) -> tuple[Node, ...]:
    """Every configured resource."""
    return tuple(
        replace(_node(one), model=one.model, revision=one.revision, calls=one.calls, tasks=one.tasks)
        for one in status.resources
    )


def internal(status: MachineStatus) -> tuple[Node, ...]:
    """Every part of the server itself."""
    return tuple(_node(one) for one in status.internal)


def modules(status: MachineStatus) -> tuple[Node, ...]:
    """Every configured module, as the part of the server that runs it."""
    nodes = {node.name: node for node in internal(status)}
    return tuple(nodes[one.node] for one in status.modules if one.node in nodes)


def parts(status: MachineStatus) -> tuple[Node, ...]:
    """Every other part of the server itself."""
    shown = {one.node for one in status.modules}
    return tuple(node for node in internal(status) if node.name not in shown)


def overview(status: MachineStatus) -> list[Piece]:
    """The live parts of the overview."""
    facts = (
        status.state, status.addresses, len(status.sessions), len(status.operations), status.restart_allowed,
        status.maintenance, status.config.source, status.config.revision, status.config.last_updated,
    )  # fmt: skip
    configured = resources(status)
    counted = tuple(node.state for node in configured)
    pieces = [
        Piece("summary", "summary", (status,), facts),
        Piece("problems", "problems", (status.config,), status.config),
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
    pieces.append(Piece("graph", "graph", (picture,), _structure(status)))
    pieces += [Piece(item.id, "box", (item,), item, inside="graph") for item in picture.items]
    return pieces


def resource(status: MachineStatus, name: str) -> list[Piece]:
    """The live parts of one resource's page; none once it is gone."""
    node = find(status, name)
    if node is None:
        return []
    needs, needed = links(status, node.dependencies), links(status, node.dependents)
    return [
        Piece("head", "resource_head", (node,), node),
        Piece("dependencies", "links", ("dependencies", "Depends on", needs), needs),
        Piece("dependents", "links", ("dependents", "Needed by", needed), needed),
    ]


def find(status: MachineStatus, name: str) -> Node | None:
    """The node with this full name, or with this simple name if it is the only one."""
    configured = resources(status)
    exact = [node for node in (*configured, *internal(status)) if node.name == name]
    meant = exact or [node for node in configured if words.short(node.name) == name]
    return meant[0] if len(meant) == 1 else None


def links(status: MachineStatus, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Full names with the state of each."""
    states = _states(status)
    return tuple((full, states.get(full, MISSING)) for full in (_full(name, states) for name in names))


def drawing(status: MachineStatus) -> Drawing:
    """The graph of resources and parts of the server; a name that is needed and not there is drawn as missing."""
    nodes = {node.name: node for node in (*resources(status), *internal(status))}
    plan = _layout(_structure(status))
    items = []
    for box in plan.boxes:
        node = nodes.get(box.name)
        state, reason = (node.state, node.reason) if node else (MISSING, "not configured")
        id_ = "g" + words.dom_id(box.name)
        items.append(Item(id_, box.name, words.kind(box.name), state, reason, box.x, box.y))
    return Drawing(plan.width, plan.height, tuple(items), plan.edges)


_Structure: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]


def _structure(status: MachineStatus) -> _Structure:
    """Names and edges, without states: what decides the layout."""
    states = _states(status)
    found: dict[str, tuple[str, ...]] = {}
    for one in (*resources(status), *internal(status)):
        found[one.name] = tuple(_full(name, states) for name in one.dependencies)
    missing = {name for names in found.values() for name in names} - set(found)
    return tuple(sorted({**found, **dict.fromkeys(missing, ())}.items()))


@lru_cache(maxsize=8)  # the structure changes rarely, states all the time
def _layout(structure: _Structure) -> Layout:
    return layout(dict(structure))


def _node(one: ResourceStatus | NodeView) -> Node:
    # To the second: the status computes the time of an event anew each time, and it differs by microseconds.
    since = (one.since + timedelta(milliseconds=500)).replace(microsecond=0)
    return Node(one.name, one.state, one.reason, since, one.restarts, one.dependencies, one.dependents)


def _states(status: MachineStatus) -> Mapping[str, str]:
    return {node.name: node.state for node in (*resources(status), *internal(status))}


def _full(name: str, states: Mapping[str, str]) -> str:
    """A dependency may be written by its simple name."""
    if name in states:
        return name
    meant = [full for full in states if words.short(full) == name]
    return meant[0] if len(meant) == 1 else name

"""Drawing of a resource graph as boxes and lines, for templates. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from rpc.pages.graph_layout import BOX_HEIGHT, BOX_WIDTH, Edge, Layout, layout
from support.text import words

FITTED: Final = 1600.0  # px; a wider drawing would be illegible when scaled down to the page (1176 px)
MISSING: Final = "missing"
"""State shown for a name that is a dependency but not configured."""

Structure: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Names and their dependencies without states, which determine the layout."""


@dataclass(frozen=True, slots=True)
class Item:
    """Box of the graph."""

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
    """Graph with sizes, boxes and edges, for the template."""

    width: float
    height: float
    items: tuple[Item, ...]
    edges: tuple[Edge, ...]

    @property
    def fitted(self) -> bool:
        """True if a wide page scales the drawing down to its width instead of scrolling it."""
        return self.width <= FITTED


@dataclass(frozen=True, slots=True)
class Vertex:
    """Node to draw: full name, state, reason of the state, and names of dependencies."""

    name: str
    state: str
    reason: str
    dependencies: tuple[str, ...]


def drawing(vertices: Iterable[Vertex]) -> Drawing:
    """Return the drawing of a graph; dependencies without a vertex are drawn as missing."""
    nodes = {vertex.name: vertex for vertex in vertices}
    plan = _layout(structure(nodes.values()))
    items = []
    for box in plan.boxes:
        node = nodes.get(box.name)
        state, reason = (node.state, node.reason) if node else (MISSING, "not configured")
        items.append(Item("g" + words.dom_id(box.name), box.name, words.kind(box.name), state, reason, box.x, box.y))
    return Drawing(plan.width, plan.height, tuple(items), plan.edges)


def structure(vertices: Iterable[Vertex]) -> Structure:
    """Return the full names and their dependencies, including missing names."""
    nodes = {vertex.name: vertex for vertex in vertices}
    dependencies = {name: tuple(full_name(dep, nodes) for dep in node.dependencies) for name, node in nodes.items()}
    missing = {name for names in dependencies.values() for name in names} - set(dependencies)
    return tuple(sorted({**dependencies, **dict.fromkeys(missing, ())}.items()))


def full_name(name: str, nodes: Mapping[str, object]) -> str:
    """Resolve a dependency given by its short name; return `name` unchanged if it is unknown or ambiguous."""
    if name in nodes:
        return name
    matches = [full for full in nodes if words.short(full) == name]
    return matches[0] if len(matches) == 1 else name


@lru_cache(maxsize=64)  # the structure changes rarely, states often
def _layout(graph: Structure) -> Layout:
    return layout(dict(graph))

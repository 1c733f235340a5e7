"""The graph of a machine as boxes and lines, ready for a template. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from rpc.pages import words
from rpc.pages.layout import BOX_HEIGHT, BOX_WIDTH, Edge, Layout, layout

FITTED: Final = 1600.0  # px; a wider drawing would be illegible if it were scaled down to the page (1176 px)
MISSING: Final = "missing"
"""Shown as the state of a name that something depends on and nobody configured."""

Structure: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Names and edges, without states: what decides the layout."""


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

    @property
    def fitted(self) -> bool:
        """Whether a wide page scales the drawing down to its width instead of scrolling it."""
        return self.width <= FITTED


@dataclass(frozen=True, slots=True)
class Vertex:
    """What is drawn as a box: a full name, its state and why it is in it, and the names that it depends on."""

    name: str
    state: str
    reason: str
    dependencies: tuple[str, ...]


def drawing(vertices: Iterable[Vertex]) -> Drawing:
    """The graph; a name that is needed and not there is drawn as missing."""
    nodes = {vertex.name: vertex for vertex in vertices}
    plan = _layout(structure(nodes.values()))
    items = []
    for box in plan.boxes:
        node = nodes.get(box.name)
        state, reason = (node.state, node.reason) if node else (MISSING, "not configured")
        items.append(Item("g" + words.dom_id(box.name), box.name, words.kind(box.name), state, reason, box.x, box.y))
    return Drawing(plan.width, plan.height, tuple(items), plan.edges)


def structure(vertices: Iterable[Vertex]) -> Structure:
    """Names, full ones, and edges."""
    nodes = {vertex.name: vertex for vertex in vertices}
    found = {name: tuple(full_name(dep, nodes) for dep in node.dependencies) for name, node in nodes.items()}
    missing = {name for names in found.values() for name in names} - set(found)
    return tuple(sorted({**found, **dict.fromkeys(missing, ())}.items()))


def full_name(name: str, known: Mapping[str, object]) -> str:
    """A dependency may be written by its simple name."""
    if name in known:
        return name
    meant = [full for full in known if words.short(full) == name]
    return meant[0] if len(meant) == 1 else name


@lru_cache(maxsize=64)  # the structure changes rarely, states all the time
def _layout(wanted: Structure) -> Layout:
    return layout(dict(wanted))

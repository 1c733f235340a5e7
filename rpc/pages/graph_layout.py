"""Layered layout of the resource graph: positions of boxes and paths of edges.

Pure and deterministic. Dependencies are left of their dependents. Layers are assigned by longest path, the order within
a layer by barycenters (Sugiyama, Tagawa, Toda 1981), and vertical positions by isotonic regression: the exact
least-squares solution for being near the neighbors while keeping the spacing.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

BOX_WIDTH: Final = 168.0
BOX_HEIGHT: Final = 38.0
GAP_X: Final = 56.0
GAP_Y: Final = 10.0
LANE_HEIGHT: Final = 8.0  # height that an edge takes in each layer that it passes
MARGIN: Final = 8.0
GRID_COLUMNS: Final = 4  # for boxes without edges, which are placed below the layers
SWEEPS: Final = 8  # more sweeps hardly reduce crossings on graphs of machine size


@dataclass(frozen=True, slots=True)
class Box:
    """Box of a node: its name, its layer (0 is leftmost) and its upper left corner."""

    name: str
    layer: int
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """Edge from a dependency to its dependent, through points at which the line is horizontal."""

    source: str
    target: str
    points: tuple[tuple[float, float], ...]

    @property
    def path(self) -> str:
        """Line in SVG path notation."""
        (x, y), *rest = self.points
        parts = [f"M{x:g} {y:g}"]
        for to_x, to_y in rest:
            middle = (x + to_x) / 2
            parts.append(f"C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}")
            x, y = to_x, to_y
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a graph within `width` by `height`."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


Vertex = tuple[str, str, int]
"""A node is (name, "", 0); the point where the edge source -> target passes layer n is (source, target, n)."""


def layout(dependencies: Mapping[str, Iterable[str]]) -> Layout:
    """Lay out the nodes that are keys of `dependencies`; edges to other names and self-edges are omitted.

    Cycles are allowed: the edge that closes a cycle runs from right to left.
    """
    edges = {
        name: tuple(sorted({dep for dep in deps if dep in dependencies and dep != name}))
        for name, deps in sorted(dependencies.items())
    }
    touched = {name for name, deps in edges.items() if deps} | {dep for deps in edges.values() for dep in deps}
    forward = _without_back_edges({name: deps for name, deps in edges.items() if name in touched})
    layer = layers(forward)
    rows, links = _rows(forward, layer)
    rows = _ordered(rows, links)
    top = _heights(rows, links)

    boxes = [Box(name, layer[name], _column(layer[name]), top[name, "", 0]) for name in forward]
    drawn = [_edge(dep, name, layer, top) for name, deps in edges.items() if name in touched for dep in deps]
    width = max((box.x + BOX_WIDTH for box in boxes), default=0.0)
    height = max(
        (*(box.y + BOX_HEIGHT for box in boxes), *(py for edge in drawn for _, py in edge.points)), default=0.0
    )

    below = height + (2 * GAP_Y if boxes else MARGIN)
    for index, name in enumerate(name for name in edges if name not in touched):
        row, column = divmod(index, GRID_COLUMNS)
        box = Box(name, 0, MARGIN + column * (BOX_WIDTH + GAP_Y), below + row * (BOX_HEIGHT + GAP_Y))
        boxes.append(box)
        width, height = max(width, box.x + BOX_WIDTH), box.y + BOX_HEIGHT
    return Layout(width + MARGIN, height + MARGIN, tuple(sorted(boxes, key=lambda box: box.name)), tuple(drawn))


def layers(dependencies: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the longest-path layers of an acyclic graph, by name.

    Nodes without dependencies are then moved right, next to their first dependent.
    """
    dependents: dict[str, list[str]] = {name: [] for name in dependencies}
    missing = {name: len(deps) for name, deps in dependencies.items()}
    for name, deps in dependencies.items():
        for dep in deps:
            dependents[dep].append(name)
    layer = dict.fromkeys(dependencies, 0)
    ready = [name for name, count in missing.items() if count == 0]
    for name in ready:  # grows during the iteration
        for dependent in dependents[name]:
            layer[dependent] = max(layer[dependent], layer[name] + 1)
            missing[dependent] -= 1
            if missing[dependent] == 0:
                ready.append(dependent)
    for name, deps in dependencies.items():
        if not deps and dependents[name]:
            layer[name] = min(layer[dependent] for dependent in dependents[name]) - 1
    return layer


def _without_back_edges(edges: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Remove the edges that close a cycle in a depth-first search, which is iterative because chains may be long."""
    on_path: set[str] = set()
    done: set[str] = set()
    acyclic: dict[str, list[str]] = {name: [] for name in edges}
    for root in edges:
        stack = [(root, iter(edges[root]))] if root not in done else []
        on_path.update(name for name, _ in stack)
        while stack:
            name, deps = stack[-1]
            for dep in deps:
                if dep in on_path:
                    continue
                acyclic[name].append(dep)
                if dep not in done:
                    on_path.add(dep)
                    stack.append((dep, iter(edges[dep])))
                    break
            else:
                stack.pop()
                on_path.discard(name)
                done.add(name)
    return {name: tuple(deps) for name, deps in acyclic.items()}


def _rows(
    forward: Mapping[str, tuple[str, ...]], layer: Mapping[str, int]
) -> tuple[list[list[Vertex]], dict[Vertex, list[Vertex]]]:
    """Return the vertices of each layer, and for each vertex its neighbors in the layer to the left."""
    rows: list[list[Vertex]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    links: dict[Vertex, list[Vertex]] = {}
    for name in forward:
        rows[layer[name]].append((name, "", 0))
        links[name, "", 0] = []
    for name, deps in forward.items():
        for dep in deps:
            left: Vertex = (dep, "", 0)
            for passed in range(layer[dep] + 1, layer[name]):
                bend = (dep, name, passed)
                rows[passed].append(bend)
                links[bend] = [left]
                left = bend
            links[name, "", 0].append(left)
    return rows, links


def _ordered(rows: list[list[Vertex]], links: Mapping[Vertex, Sequence[Vertex]]) -> list[list[Vertex]]:
    """Return the vertex order with the fewest crossings found by alternating barycenter sweeps."""
    right: dict[Vertex, list[Vertex]] = {vertex: [] for vertex in links}
    for vertex, lefts in links.items():
        for left in lefts:
            right[left].append(vertex)
    best, fewest = [list(row) for row in rows], crossings(rows, links)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        neighbours: Mapping[Vertex, Sequence[Vertex]] = links if sweep % 2 == 0 else right
        order = range(1, len(rows)) if sweep % 2 == 0 else range(len(rows) - 2, -1, -1)
        for index in order:
            neighbor_row = rows[index - 1 if sweep % 2 == 0 else index + 1]
            place = {vertex: position for position, vertex in enumerate(neighbor_row)}
            own = {vertex: position for position, vertex in enumerate(rows[index])}
            centre = {v: _mean([place[n] for n in neighbours[v]], own[v]) for v in rows[index]}
            rows[index].sort(key=lambda v: (centre[v], own[v]))
        count = crossings(rows, links)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
    return best


def crossings(rows: Sequence[Sequence[Vertex]], links: Mapping[Vertex, Sequence[Vertex]]) -> int:
    """Return the number of crossings between edges of adjacent layers."""
    total = 0
    for left, right in pairwise(rows):
        place = {vertex: position for position, vertex in enumerate(left)}
        left_ends: list[int] = []
        for vertex in right:
            ends = [place[other] for other in links[vertex]]
            total += sum(len(left_ends) - bisect_right(left_ends, end) for end in ends)
            for end in ends:
                insort(left_ends, end)
    return total


def _heights(rows: Sequence[Sequence[Vertex]], links: Mapping[Vertex, Sequence[Vertex]]) -> dict[Vertex, float]:
    """Return the top of each vertex, as near to the middle of its neighbors as order and spacing allow."""
    around: dict[Vertex, list[Vertex]] = {vertex: list(lefts) for vertex, lefts in links.items()}
    for vertex, lefts in links.items():
        for left in lefts:
            around[left].append(vertex)
    middle: dict[Vertex, float] = {}
    for row in rows:
        middle.update(zip(row, _spread(row, [0.0] * len(row)), strict=True))
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            targets = [_mean([middle[other] for other in around[vertex]], middle[vertex]) for vertex in row]
            middle.update(zip(row, _spread(row, targets), strict=True))
    top = min((value - _size(vertex) / 2 for vertex, value in middle.items()), default=0.0)
    return {vertex: round(value - _size(vertex) / 2 - top + MARGIN, 1) for vertex, value in middle.items()}


def _spread(row: Sequence[Vertex], targets: Sequence[float]) -> list[float]:
    """Return the middles nearest to `targets` (least squares) that keep order and spacing: pool adjacent violators."""
    offsets = [0.0]
    for above, below in pairwise(row):
        offsets.append(offsets[-1] + (_size(above) + _size(below)) / 2 + GAP_Y)
    blocks: list[tuple[float, int]] = []  # (mean, count)
    for target, offset in zip(targets, offsets, strict=False):
        mean, count = target - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, many = blocks.pop()
            mean, count = (mean * count + other * many) / (count + many), count + many
        blocks.append((mean, count))
    means = [mean for mean, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def _edge(source: str, target: str, layer: Mapping[str, int], y: Mapping[Vertex, float]) -> Edge:
    start, end = layer[source], layer[target]
    points = [(_column(start) + BOX_WIDTH, y[source, "", 0] + BOX_HEIGHT / 2)]
    for passed in range(start + 1, end):
        lane = y[source, target, passed] + LANE_HEIGHT / 2
        points += [(_column(passed), lane), (_column(passed) + BOX_WIDTH, lane)]
    points.append((_column(end), y[target, "", 0] + BOX_HEIGHT / 2))
    return Edge(source, target, tuple(points))


def _column(layer: int) -> float:
    return MARGIN + layer * (BOX_WIDTH + GAP_X)


def _size(vertex: Vertex) -> float:
    return LANE_HEIGHT if vertex[1] else BOX_HEIGHT


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise

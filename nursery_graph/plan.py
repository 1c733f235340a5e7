"""Plan for a desired set of nodes: find missing names, duplicates and cycles, and compare with the running set.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from nursery_graph.node import Node


@dataclass(frozen=True, slots=True)
class ResolvedNode:
    """A node with its dependencies and problems, resolved against the whole desired set."""

    node: Node
    requires: tuple[str, ...]  # sorted, so that runs are reproducible
    uses: tuple[str, ...]  # sorted, without required and ignored names
    problem: str = ""  # why it cannot start, independent of the state of other nodes
    note: str = ""  # a warning for the user about a node that can start

    def may_continue(self, other: ResolvedNode) -> bool:
        """Return whether an instance started for `other` may keep running for this node."""
        return self.node.version == other.node.version and self.requires == other.requires and self.uses == other.uses


@dataclass(frozen=True, slots=True)
class Plan:
    """The difference between the observed and the desired set, by name, in the order of the desired set."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    replaced: tuple[str, ...]  # must be stopped and started again
    revised: tuple[str, ...]  # may keep running, under a new revision
    kept: tuple[str, ...]


def difference(observed: Mapping[str, ResolvedNode], desired: Mapping[str, ResolvedNode]) -> Plan:
    """Compare the set that the graph works towards now with a new desired set."""
    added, replaced, revised, kept = [], [], [], []
    for name, node in desired.items():
        old = observed.get(name)
        if old is None:
            added.append(name)
        elif not node.may_continue(old):
            replaced.append(name)
        elif node.node.revision != old.node.revision:
            revised.append(name)
        else:
            kept.append(name)
    removed = tuple(name for name in observed if name not in desired)
    return Plan(tuple(added), removed, tuple(replaced), tuple(revised), tuple(kept))


def resolve(nodes: Iterable[Node]) -> dict[str, ResolvedNode]:
    """Resolve the desired set as a whole. Never raises because of its content.

    A duplicate name, a missing required name and a cycle of required names are problems only of the nodes concerned. A
    `uses` that closes a cycle is ignored: an optional dependency must not keep a node from running.
    """
    by_name: dict[str, Node] = {}
    copies: dict[str, int] = {}
    for node in nodes:
        by_name.setdefault(node.name, node)
        copies[node.name] = copies.get(node.name, 0) + 1

    dependencies = {name: node.requires | node.uses for name, node in by_name.items()}
    cyclic = {name: group for group in cyclic_groups(dependencies) for name in group}
    required = {name: by_name[name].requires for name in cyclic}
    cycles = {name: _cycle(required, group) for group in cyclic_groups(required) for name in group}

    desired = {}
    for name, node in by_name.items():
        ignored = sorted(node.uses & cyclic[name] - node.requires) if name in cyclic else []
        desired[name] = ResolvedNode(
            node,
            tuple(sorted(node.requires)),
            tuple(sorted(node.uses - node.requires - frozenset(ignored))),
            _problem(node, copies[name], cycles.get(name), sorted(node.requires - by_name.keys())),
            f"optional dependency ignored because it depends on this node: {_quoted(ignored)}" if ignored else "",
        )
    return desired


def _problem(node: Node, copies: int, cycle: list[str] | None, missing: list[str]) -> str:
    if copies > 1:
        return f"{copies} nodes are called {node.name!r}: names must be unique"
    if cycle:
        return f"dependency cycle: {' -> '.join(cycle)}"
    if missing:
        return f"requires {_quoted(missing)}, which {'is' if len(missing) == 1 else 'are'} not configured"
    return ""


def _quoted(names: Collection[str]) -> str:
    return ", ".join(repr(name) for name in names)


def cyclic_groups(edges: Mapping[str, Collection[str]]) -> list[frozenset[str]]:
    """Return the groups of nodes that are on common cycles, including single nodes that depend on themselves.

    Edges to nodes that are not in `edges` are ignored.

    Strongly connected components by Tarjan (1972), without recursion.
    """
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    open_nodes: dict[str, None] = {}
    groups: list[frozenset[str]] = []
    for root in edges:
        if root in order:
            continue
        path = [(root, iter(edges[root]))]
        order[root] = low[root] = len(order)
        open_nodes[root] = None
        while path:
            name, rest = path[-1]
            for target in rest:
                if target not in edges:
                    continue
                if target not in order:
                    order[target] = low[target] = len(order)
                    open_nodes[target] = None
                    path.append((target, iter(edges[target])))
                    break
                if target in open_nodes:
                    low[name] = min(low[name], order[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[name])
                if low[name] == order[name]:
                    group = set()
                    while name not in group:
                        group.add(open_nodes.popitem()[0])
                    if len(group) > 1 or name in edges[name]:
                        groups.append(frozenset(group))
    return groups


def _cycle(edges: Mapping[str, Collection[str]], group: frozenset[str]) -> list[str]:
    """Return a shortest cycle through the first name of a group, with that name repeated at the end."""
    first = min(group)
    came_from: dict[str, str] = {}
    layer = [first]
    while first not in came_from:
        following = []
        for name in layer:
            for target in sorted(edges[name]):
                if target in group and target not in came_from:
                    came_from[target] = name
                    following.append(target)
        layer = following
    back = [first]
    while len(back) == 1 or back[-1] != first:
        back.append(came_from[back[-1]])
    return back[::-1]

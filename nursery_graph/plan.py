"""What to do about a desired set of nodes: missing and doubled names, cycles, the difference to what is there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from nursery_graph.node import Node


@dataclass(frozen=True, slots=True)
class Wanted:
    """A node as the whole desired set makes it."""

    node: Node
    requires: tuple[str, ...]  # sorted, so that a run can be repeated
    uses: tuple[str, ...]  # sorted, without required names and those left out
    problem: str = ""  # why it cannot start, whatever the other nodes do
    note: str = ""  # what the user should know although it can start

    def same_life(self, other: Wanted) -> bool:
        """Whether a node running for `other` may go on running for this one."""
        return self.node.version == other.node.version and self.requires == other.requires and self.uses == other.uses


@dataclass(frozen=True, slots=True)
class Plan:
    """The difference between observed and desired, by name, in the order of the desired set."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    replaced: tuple[str, ...]  # must be stopped and started again
    revised: tuple[str, ...]  # may go on, under a new revision
    kept: tuple[str, ...]


def difference(observed: Mapping[str, Wanted], desired: Mapping[str, Wanted]) -> Plan:
    """Compare what the graph works towards now with what it shall work towards."""
    added, replaced, revised, kept = [], [], [], []
    for name, wanted in desired.items():
        old = observed.get(name)
        if old is None:
            added.append(name)
        elif not wanted.same_life(old):
            replaced.append(name)
        elif wanted.node.revision != old.node.revision:
            revised.append(name)
        else:
            kept.append(name)
    removed = tuple(name for name in observed if name not in desired)
    return Plan(tuple(added), removed, tuple(replaced), tuple(revised), tuple(kept))


def resolve(nodes: Iterable[Node]) -> dict[str, Wanted]:
    """Look at the desired set as a whole. Never raises because of what the nodes say.

    A doubled name, a required name that is not there and a cycle of required names are problems of the nodes concerned
    and of nobody else. A `uses` on a cycle is left out: an optional dependency must not keep a node from running.
    """
    by_name: dict[str, Node] = {}
    copies: dict[str, int] = {}
    for node in nodes:
        by_name.setdefault(node.name, node)
        copies[node.name] = copies.get(node.name, 0) + 1

    mixed = {
        name: group for group in knots({name: n.requires | n.uses for name, n in by_name.items()}) for name in group
    }
    required = {name: by_name[name].requires for name in mixed}
    cycles = {name: _cycle(required, group) for group in knots(required) for name in group}

    desired = {}
    for name, node in by_name.items():
        left_out = sorted(node.uses & mixed[name] - node.requires) if name in mixed else []
        desired[name] = Wanted(
            node,
            tuple(sorted(node.requires)),
            tuple(sorted(node.uses - node.requires - frozenset(left_out))),
            _problem(node, copies[name], cycles.get(name), sorted(node.requires - by_name.keys())),
            f"left out, because it needs this node in turn: {_listed(left_out)}" if left_out else "",
        )
    return desired


def _problem(node: Node, copies: int, cycle: list[str] | None, missing: list[str]) -> str:
    if copies > 1:
        return f"{copies} nodes are called {node.name!r}: names must be unique"
    if cycle:
        return f"dependency cycle: {' -> '.join(cycle)}"
    if missing:
        return f"requires {_listed(missing)}, which {'is' if len(missing) == 1 else 'are'} not configured"
    return ""


def _listed(names: Collection[str]) -> str:
    return ", ".join(repr(name) for name in names)


def knots(edges: Mapping[str, Collection[str]]) -> list[frozenset[str]]:
    """Groups of nodes that reach each other, and nodes that point at themselves; edges that lead nowhere are ignored.

    Strongly connected components by Tarjan (1972), without recursion.
    """
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    open_nodes: dict[str, None] = {}
    found: list[frozenset[str]] = []
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
                        found.append(frozenset(group))
    return found


def _cycle(edges: Mapping[str, Collection[str]], group: frozenset[str]) -> list[str]:
    """A shortest cycle through the first name of a knot, first name repeated at the end."""
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

"""What an observer sees: immutable statuses, snapshots and transitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nursery_graph.lifecycle import State


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node at one moment. Times are of the Trio clock, in seconds."""

    name: str
    state: State
    since: float  # when it came into `state`
    reason: str  # why it is in this state, or what the user should know; empty if all is well
    revision: str  # of the configuration that runs, or that would run next
    requires: frozenset[str]
    uses: frozenset[str]
    waiting_for: tuple[str, ...] = ()  # names that keep an unconfigured node from starting
    retry_at: float | None = None  # when a failed node will be tried again by itself
    runs: int = 0  # how often it was started
    tasks: tuple[str, ...] = ()  # its task tree; only in `snapshot(tasks=True)` and when it is overdue
    failure: str = ""  # why its last run failed, until a run is ready or its configuration changes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All nodes at one moment. `sequence` grows with every change."""

    time: float
    sequence: int
    nodes: Mapping[str, NodeStatus]

    def __getitem__(self, name: str) -> NodeStatus:
        return self.nodes[name]


@dataclass(frozen=True, slots=True)
class Transition:
    """Something happened to a node.

    `before` is None for a new name, `after` is None for a forgotten one; both are equal when only the reason is new.
    """

    name: str
    before: State | None
    after: State | None
    reason: str
    time: float


@dataclass(frozen=True, slots=True)
class Overdue:
    """What still ran when the time for the whole shutdown was up: the task tree of each node."""

    tasks: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        return "\n".join(f"{name}:\n  " + "\n  ".join(lines) for name, lines in self.tasks.items())

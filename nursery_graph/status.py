"""Immutable records for observers: statuses, snapshots and transitions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nursery_graph.lifecycle import State


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """The status of one node at one moment. Times are seconds of the Trio clock."""

    name: str
    state: State
    since: float  # when it entered `state`
    reason: str  # why it is in this state, or a warning; empty if there is nothing to report
    revision: str  # revision of the configuration that runs or would run next
    requires: frozenset[str]
    uses: frozenset[str]
    waiting_for: tuple[str, ...] = ()  # names that keep an unconfigured node from starting
    retry_at: float | None = None  # when a failed node will be restarted
    runs: int = 0  # how often it was started
    tasks: tuple[str, ...] = ()  # its task tree; only in `snapshot(tasks=True)` and when it is overdue
    failure: str = ""  # why its last run failed, until a run is ready or its configuration changes
    failed_since: float | None = None  # when `failure` began: attempts that fail again do not change it


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The status of all nodes at one moment. `sequence` grows with every change."""

    time: float
    sequence: int
    nodes: Mapping[str, NodeStatus]

    def __getitem__(self, name: str) -> NodeStatus:
        return self.nodes[name]


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of a node's state, or of the reason for it.

    `before` is None for a new name, `after` is None for a removed one; both are equal when only the reason changed.
    """

    name: str
    before: State | None
    after: State | None
    reason: str
    time: float


@dataclass(frozen=True, slots=True)
class Overdue:
    """The task trees of the nodes that still ran at the shutdown timeout, by name."""

    tasks: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        return "\n".join(f"{name}:\n  " + "\n  ".join(lines) for name, lines in self.tasks.items())

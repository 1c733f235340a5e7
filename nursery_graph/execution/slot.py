"""The state of one name in the graph: desired node, running instance and phase; and one run of a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import trio

from nursery_graph.execution.tasks import task_tree
from nursery_graph.execution.timers import Timer
from nursery_graph.lifecycle import USABLE, Phase, State
from nursery_graph.plan import ResolvedNode
from nursery_graph.restart import History
from nursery_graph.status import NodeStatus


class RunListener(Protocol):
    """Receives what a run reports about itself."""

    def ready(self, instance: Instance, value: object) -> None:
        """Mark the node as ready and pass `value` to its dependents."""
        ...

    def report(self, instance: Instance, sick: str) -> None:
        """Mark the node as unhealthy because of `sick`, or as healthy if that is empty."""
        ...


class Instance:
    """One run of a node, from the call of `run` until it and all its dependents have ended.

    `upstream` and `dependents` link instances, not names: an instance is bound to exactly those whose values it
    received. It is also the `task_status` that is passed to `run`.
    """

    __slots__ = (
        "abandoned",
        "cancelled",
        "dependents",
        "deps",
        "ended",
        "engine",
        "failure",
        "finished",
        "health_problem",
        "ready_at",
        "resolved",
        "scope",
        "slot",
        "stopping",
        "superseded",
        "task",
        "timer",
        "upstream",
        "value",
    )

    def __init__(self, engine: RunListener, slot: Slot, resolved: ResolvedNode, upstream: dict[str, Instance]) -> None:
        self.engine = engine
        self.slot = slot
        self.resolved = resolved
        self.upstream = upstream
        self.deps: Mapping[str, Any] = {}
        self.dependents: dict[Instance, None] = {}  # a set that keeps its order, so that a run can be repeated
        self.scope = trio.CancelScope(shield=True)
        self.task: trio.lowlevel.Task | None = None
        self.timer: Timer | None = None  # the start limit while starting, the stop limit once cancelled
        self.value: Any = None
        self.ready_at: float | None = None
        self.health_problem = ""  # what it last reported about its own health; empty: healthy
        self.failure = ""  # why it failed; empty if it did not
        self.finished = False  # returned by itself, as its restart policy allows
        self.stopping = False  # stop was requested; cancelled once its dependents have ended
        self.cancelled = False
        self.ended = False  # its task has left `run`
        self.abandoned = False  # did not end in time; only the next run of the same node waits for it
        self.superseded = False  # replaced by a new configuration or retry(): no back-off after its failure

    def started(self, value: Any = None) -> None:
        """Report that the node is ready and pass `value` to its dependents. As in Trio, a second call is an error."""
        if self.ready_at is not None:
            raise RuntimeError(f"node {self.slot.name!r}: `started` was called twice")
        self.engine.ready(self, value)


class Slot:
    """The desired node of a name, its running instance, and the phase it is in."""

    __slots__ = (
        "_peers",
        "_status",
        "desired",
        "failed_since",
        "failure",
        "history",
        "instance",
        "name",
        "overdue",
        "phase",
        "reason",
        "retry",
        "runs",
        "settled",
        "since",
        "waits_for",
    )

    def __init__(self, name: str, resolved: ResolvedNode, peers: Mapping[str, Slot]) -> None:
        self.name = name
        self.desired: ResolvedNode | None = resolved  # None: no longer configured; removed once its instance has ended
        self.phase = Phase.IDLE
        self.since = trio.current_time()
        self.reason = ""
        self.failure = ""  # why its last run failed, until a run is ready or its configuration changes
        self.failed_since = 0.0  # when the first of the failures without a ready run in between occurred
        self.instance: Instance | None = None
        self.history = History()
        self.retry: Timer | None = None
        self.runs = 0
        self.overdue: tuple[str, ...] = ()  # the task tree of an instance that did not end in time
        self.waits_for = ""  # the first name that it waits for; only changes of that one can let it start
        # False while it may still become ready or fail by itself: nodes that use it wait for that.
        self.settled = False
        self._peers = peers
        self._status: NodeStatus | None = None

    @property
    def state(self) -> State | None:
        """The public state; None once the name is removed."""
        return self.phase.state

    @property
    def busy(self) -> bool:
        """Whether the graph still has work to do for it."""
        if self.phase is Phase.IDLE:
            return not self.settled
        if self.phase in (Phase.STARTING, Phase.FAILING, Phase.STOPPING):
            return self.instance is None or not self.instance.abandoned
        return False

    def unmet(self) -> Iterator[str]:
        """Return the names that it waits for before it can start, required ones first."""
        assert self.desired is not None
        for name in self.desired.requires:
            peer = self._peers.get(name)
            if peer is None or peer.phase not in USABLE:
                yield name
        for name in self.desired.uses:
            peer = self._peers.get(name)
            if peer is not None and peer.desired is not None and not peer.settled:
                yield name

    def changed(self) -> None:
        """Invalidate the cached status."""
        self._status = None

    def status(self) -> NodeStatus:
        """Return the current status, cached until something changes."""
        status = self._status
        # What an idle node waits for changes with other nodes, so its status is not cached.
        if status is None or self.phase is Phase.IDLE:
            self._status = status = self._build_status()
        return status

    def _build_status(self) -> NodeStatus:
        shown = self.desired or (self.instance and self.instance.resolved)
        state = self.state
        assert shown
        assert state
        node = shown.node
        return NodeStatus(
            name=self.name,
            state=state,
            since=self.since,
            reason=self.reason,
            revision=node.revision,
            requires=frozenset(node.requires),
            uses=frozenset(node.uses),
            waiting_for=tuple(self.unmet()) if self.phase is Phase.IDLE and self.desired else (),
            retry_at=self.retry.when if self.retry is not None and not self.retry.cancelled else None,
            runs=self.runs,
            tasks=self.overdue,
            failure=self.failure,
            failed_since=self.failed_since if self.failure else None,
        )

    def task_tree(self) -> tuple[str, ...]:
        """Describe where each task of its instance waits, one line per task."""
        task = self.instance and self.instance.task
        return task_tree(task) if task else ()

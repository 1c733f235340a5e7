"""All there is about one name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import trio

from nursery_graph.instance import Instance
from nursery_graph.lifecycle import USABLE, Phase, State
from nursery_graph.plan import Wanted
from nursery_graph.restart import History
from nursery_graph.status import NodeStatus
from nursery_graph.tasks import task_tree
from nursery_graph.timers import Timer


class Slot:
    """What is wanted under a name, what there is, and the phase it is in."""

    __slots__ = (
        "_peers",
        "_status",
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
        "wanted",
    )

    def __init__(self, name: str, wanted: Wanted, peers: Mapping[str, Slot]) -> None:
        self.name = name
        self.wanted: Wanted | None = wanted  # None: no longer configured; forgotten once its instance has ended
        self.phase = Phase.IDLE
        self.since = trio.current_time()
        self.reason = ""
        self.failure = ""  # why its last run failed, until one is ready or its configuration changes
        self.instance: Instance | None = None
        self.history = History()
        self.retry: Timer | None = None
        self.runs = 0
        self.overdue: tuple[str, ...] = ()  # the task tree of an instance that did not end in time
        self.waits_for = ""  # the first name that keeps it from starting; only news of that one is worth a look
        # False while it may become ready, or fail, without help from outside: whoever uses it waits for that.
        self.settled = False
        self._peers = peers
        self._status: NodeStatus | None = None

    @property
    def state(self) -> State | None:
        """Its public state; None once it is forgotten."""
        return self.phase.state

    @property
    def busy(self) -> bool:
        """Whether the graph still has something to do about it."""
        if self.phase is Phase.IDLE:
            return not self.settled
        if self.phase in (Phase.STARTING, Phase.FAILING, Phase.STOPPING):
            return self.instance is None or not self.instance.abandoned
        return False

    def unmet(self) -> Iterator[str]:
        """The names that keep it from starting now, required ones first."""
        assert self.wanted is not None
        for name in self.wanted.requires:
            peer = self._peers.get(name)
            if peer is None or peer.phase not in USABLE:
                yield name
        for name in self.wanted.uses:
            peer = self._peers.get(name)
            if peer is not None and peer.wanted is not None and not peer.settled:
                yield name

    def changed(self) -> None:
        """Something that its status shows is new."""
        self._status = None

    def status(self) -> NodeStatus:
        """Its status now; kept until something changes."""
        status = self._status
        # What an idle node waits for changes with its peers, not with itself.
        if status is None or self.phase is Phase.IDLE:
            self._status = status = self._look()
        return status

    def _look(self) -> NodeStatus:
        shown = self.wanted or (self.instance and self.instance.wanted)
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
            waiting_for=tuple(self.unmet()) if self.phase is Phase.IDLE and self.wanted else (),
            retry_at=self.retry.when if self.retry is not None and not self.retry.cancelled else None,
            runs=self.runs,
            tasks=self.overdue,
            failure=self.failure,
        )

    def task_tree(self) -> tuple[str, ...]:
        """What its instance is doing now, a line for each task."""
        task = self.instance and self.instance.task
        return task_tree(task) if task else ()

"""One run of a node, and what code inside that run can say about it."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import trio

from nursery_graph.plan import Wanted
from nursery_graph.timers import Timer

if TYPE_CHECKING:
    from nursery_graph.slot import Slot
    from nursery_graph.steps import Steps


class Instance:
    """One run of a node, from the call of `run` until it and all its dependents have ended.

    `upstream` and `dependents` link instances, not names: an instance is bound to exactly those whose values it was
    given. It is also the `task_status` that its run is given.
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
        "ready_at",
        "scope",
        "sick",
        "slot",
        "stopping",
        "superseded",
        "task",
        "timer",
        "upstream",
        "value",
        "wanted",
    )

    def __init__(self, engine: Steps, slot: Slot, wanted: Wanted, upstream: dict[str, Instance]) -> None:
        self.engine = engine
        self.slot = slot
        self.wanted = wanted
        self.upstream = upstream
        self.deps: Mapping[str, Any] = {}
        self.dependents: dict[Instance, None] = {}  # a set that keeps its order, so that a run can be repeated
        self.scope = trio.CancelScope(shield=True)
        self.task: trio.lowlevel.Task | None = None
        self.timer: Timer | None = None  # the start limit while starting, the stop limit once cancelled
        self.value: Any = None
        self.ready_at: float | None = None
        self.sick = ""  # what it last reported about itself
        self.failure = ""  # why it failed; empty if it did not
        self.finished = False  # returned although nobody asked, and may do so
        self.stopping = False  # told to stop; cancelled once its dependents have ended
        self.cancelled = False
        self.ended = False  # its task has left `run`
        self.abandoned = False  # did not end in time; nobody waits for it but its own next run
        self.superseded = False  # by a new configuration or retry: no back-off after its failure

    def started(self, value: Any = None) -> None:
        """Ready: hand `value` to the dependents. As in Trio, calling it twice is an error."""
        if self.ready_at is not None:
            raise RuntimeError(f"node {self.slot.name!r}: called 'started' twice")
        self.engine.ready(self, value)


_current: ContextVar[Instance] = ContextVar("nursery_graph.current_node")


class CurrentNode:
    """The node that the calling task belongs to."""

    __slots__ = ("_instance",)

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    @property
    def name(self) -> str:
        """Its name in the graph."""
        return self._instance.slot.name

    def unhealthy(self, reason: str) -> None:
        """Report: it runs, but does not work, for instance because its hardware was unplugged. Dependents keep running.

        Called before `started`, it counts from then on. Without effect once the node is being stopped.
        """
        if not reason:
            raise ValueError("an unhealthy node needs a reason")
        self._instance.engine.report(self._instance, reason)

    def healthy(self) -> None:
        """Report: it works (again)."""
        self._instance.engine.report(self._instance, "")


def current_node() -> CurrentNode:
    """The node whose `run` the calling task, or the task that started it, belongs to; RuntimeError elsewhere."""
    try:
        return CurrentNode(_current.get())
    except LookupError:
        raise RuntimeError("current_node() was called outside the run of a node") from None


def enter(instance: Instance) -> None:
    """Make the calling task, and the tasks that it will start, belong to `instance`."""
    _current.set(instance)

"""Access of a node's code to its own node: its name, and reports of its health."""

from __future__ import annotations

from contextvars import ContextVar

from nursery_graph.execution.slot import Instance

_current: ContextVar[Instance] = ContextVar("nursery_graph.current_node")


class CurrentNode:
    """The node that the calling task belongs to."""

    __slots__ = ("_instance",)

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    @property
    def name(self) -> str:
        """The node's name in the graph."""
        return self._instance.slot.name

    def unhealthy(self, reason: str) -> None:
        """Report that the node runs but does not work, such as when its hardware is unplugged. Dependents keep running.

        A report made before `started` takes effect at `started`. Without effect once the node is stopping.
        """
        if not reason:
            raise ValueError("an unhealthy node needs a reason")
        self._instance.engine.report(self._instance, reason)

    def healthy(self) -> None:
        """Report that the node works (again)."""
        self._instance.engine.report(self._instance, "")


def current_node() -> CurrentNode:
    """Return the node whose `run` the calling task, or the task that started it, belongs to; RuntimeError elsewhere."""
    try:
        return CurrentNode(_current.get())
    except LookupError:
        raise RuntimeError("current_node() was called outside the run of a node") from None


def enter(instance: Instance) -> None:
    """Assign the calling task, and the tasks that it will start, to `instance`."""
    _current.set(instance)

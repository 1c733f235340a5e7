"""Nodes, as users of the graph write them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from nursery_graph.restart import Restart

if TYPE_CHECKING:
    import trio


class Run(Protocol):
    """A node's whole life in one async function.

    It begins when everything the node requires is ready. `deps` holds the values of the required nodes and of those
    used nodes that are ready, by name. Calling `task_status.started(value)` makes the node ready and passes `value` to
    its dependents. It is stopped by cancellation; cleanup is ordinary `finally` and `async with`, and everything in
    `deps` stays available until the function has ended. As everywhere in Trio, cleanup that awaits needs a shielded
    cancel scope with a deadline.

    Raising or returning before it was cancelled is a failure (see Restart for when returning is allowed). It must start
    tasks only in nurseries that it opens itself, so that none of its tasks remains when it has ended.
    """

    async def __call__(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Any]) -> None:
        """Run the node until it is cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Node:
    """A unit of work that a Graph runs under a unique name.

    Nodes in `requires` must be ready before it starts. Nodes in `uses` are passed if ready: the node restarts when one
    of them appears, changes or vanishes. An `apply` with equal `version`, `requires` and `uses` leaves a running node
    alone; other differences take effect at its next start. `revision` is shown in the snapshot.

    Raises ValueError or TypeError for invalid values; names that are not configured, cycles and duplicate names are not
    errors here but states of the node.
    """

    name: str
    run: Run
    requires: AbstractSet[str] = frozenset()
    uses: AbstractSet[str] = frozenset()
    version: Hashable = None
    revision: str = ""
    start_timeout: float = 120.0  # seconds from the call of run to started(); extended if the process was suspended
    stop_timeout: float = 30.0  # seconds from cancellation to the end of run; then the graph continues without it
    restart: Restart = field(default=Restart())

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a node needs a name")
        for attribute in ("requires", "uses"):
            names = getattr(self, attribute)
            if isinstance(names, str):
                raise TypeError(f"node {self.name!r}: {attribute} is the string {names!r}: pass a set of names")
            object.__setattr__(self, attribute, frozenset(names))
        for attribute in ("start_timeout", "stop_timeout"):
            seconds = getattr(self, attribute)
            if not seconds > 0:
                raise ValueError(f"node {self.name!r}: {attribute} is {seconds}: use a positive number of seconds")

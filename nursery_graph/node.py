"""What a user of the graph writes: nodes."""

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
    used nodes that are ready, by name. Calling `task_status.started(value)` makes the node ready and hands `value` to
    its dependents. It is stopped by cancellation; its cleanup is ordinary `finally` and `async with`, and everything in
    `deps` is alive until it has ended. As everywhere in Trio, cleanup that awaits needs a shielded cancel scope with a
    deadline.

    Raising or returning before it was cancelled is a failure (see Restart for a run that may return). It starts tasks
    only in nurseries that it opens, so that nothing of it remains when it has ended.
    """

    async def __call__(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Any]) -> None:
        """Live."""
        ...


@dataclass(frozen=True, slots=True)
class Node:
    """Something that lives in a Graph under a unique name.

    `requires` must be ready before it starts. `uses` are passed if ready: the node restarts when one of them appears,
    changes or vanishes. An `apply` with an equal `version`, `requires` and `uses` leaves a running node alone; whatever
    else differs counts from the next start on. `revision` is shown in the snapshot.

    Raises ValueError or TypeError for values that can never work; names that are not configured, cycles and duplicate
    names are not errors here but states of the node.
    """

    name: str
    run: Run
    requires: AbstractSet[str] = frozenset()
    uses: AbstractSet[str] = frozenset()
    version: Hashable = None
    revision: str = ""
    start_timeout: float = 120.0  # seconds from the call of run to started(); anew if the process stood still meanwhile
    stop_timeout: float = (
        30.0  # seconds from cancellation to the end of run; then it is reported and no longer waited for
    )
    restart: Restart = field(default=Restart())

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a node needs a name")
        for what in ("requires", "uses"):
            names = getattr(self, what)
            if isinstance(names, str):
                raise TypeError(f"node {self.name!r}: {what} is the string {names!r}: pass a set of names")
            object.__setattr__(self, what, frozenset(names))
        for what in ("start_timeout", "stop_timeout"):
            if not getattr(self, what) > 0:
                raise ValueError(
                    f"node {self.name!r}: {what} is {getattr(self, what)}: use a positive number of seconds"
                )

"""Log entries about nodes of the cloud that fail. The cloud continues without them, silently otherwise."""

from __future__ import annotations

from typing import Final

import structlog

from nursery_graph import Graph, NodeStatus

_log: Final[structlog.stdlib.BoundLogger] = structlog.get_logger("cloud")


class Failures:
    """Decides which failures of nodes are logged: a new reason, then the 2nd, 4th, 8th, ... failure for this reason."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int, int]] = {}  # reason, number of the run, failures for this reason

    def note(self, node: NodeStatus) -> int:
        """Take a status; return how often the node has failed for this reason, 0 if there is nothing to log."""
        if not node.failure:
            return 0
        reason, run, count = self._seen.get(node.name, ("", 0, 0))
        if reason == node.failure and run == node.runs:
            return 0
        count = count + 1 if reason == node.failure else 1
        self._seen[node.name] = node.failure, node.runs, count
        return count if count & (count - 1) == 0 else 0


async def log_failures(graph: Graph) -> None:
    """Log failures of nodes at ERROR until cancelled."""
    failures = Failures()
    async for snapshot in graph.changes():
        for node in snapshot.nodes.values():
            if count := failures.note(node):
                _log.error("a part of the cloud failed", part=node.name, reason=node.failure, failures=count)

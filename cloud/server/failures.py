"""Log entries about nodes of the cloud that fail. The cloud continues without them, silently otherwise."""

from __future__ import annotations

from typing import Final

import structlog

from nursery_graph import FailureCount, Graph

_log: Final[structlog.stdlib.BoundLogger] = structlog.get_logger("cloud")


async def log_failures(graph: Graph) -> None:
    """Log failures of nodes at ERROR until cancelled."""
    failures = FailureCount()
    async for snapshot in graph.changes():
        for node in snapshot.nodes.values():
            if count := failures.note(node):
                _log.error("a part of the cloud failed", part=node.name, reason=node.failure, failures=count)

"""Which failures of nodes are worth a message, so that a node that fails again and again does not fill a log. Pure."""

from __future__ import annotations

from nursery_graph.status import NodeStatus


class FailureCount:
    """Counts the failures of each node for the same reason; selects the 1st, 2nd, 4th, 8th, ... for messages."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int, int]] = {}  # reason, number of the run, failures for this reason

    def note(self, node: NodeStatus) -> int:
        """Take a status; return how often the node has failed for this reason, 0 if there is nothing to report."""
        if not node.failure:
            return 0
        reason, run, count = self._seen.get(node.name, ("", 0, 0))
        if reason == node.failure and run == node.runs:
            return 0
        count = count + 1 if reason == node.failure else 1
        self._seen[node.name] = node.failure, node.runs, count
        return count if count & (count - 1) == 0 else 0

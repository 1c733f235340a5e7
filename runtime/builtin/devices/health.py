"""How a driver says that it runs but does not work."""

from __future__ import annotations

from nursery_graph import current_node
from nursery_graph.instance import CurrentNode


class Health:
    """Of the node in whose `run` it was made; outside a graph nobody is told."""

    def __init__(self) -> None:
        self._node: CurrentNode | None = None
        try:
            self._node = current_node()
        except RuntimeError:
            pass

    def bad(self, reason: str) -> None:
        """It runs, but does not work."""
        if self._node is not None:
            self._node.unhealthy(reason)

    def good(self) -> None:
        """It works (again)."""
        if self._node is not None:
            self._node.healthy()

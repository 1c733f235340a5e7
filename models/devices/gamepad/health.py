"""Reports of a driver that runs but does not work."""

from __future__ import annotations

from nursery_graph import CurrentNode, current_node


class NodeHealth:
    """Health of the node in whose `run` this object is created. Outside a graph, reports are ignored."""

    def __init__(self) -> None:
        self._node: CurrentNode | None = None
        try:
            self._node = current_node()
        except RuntimeError:
            pass

    def unhealthy(self, reason: str) -> None:
        """Report that the driver runs but does not work."""
        if self._node is not None:
            self._node.unhealthy(reason)

    def healthy(self) -> None:
        """Report that the driver works."""
        if self._node is not None:
            self._node.healthy()

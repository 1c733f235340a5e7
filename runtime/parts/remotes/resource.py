"""Resources of remotes: every method is a call to the machine that has the resource."""

from __future__ import annotations

from typing import Any, ClassVar

from engine import Attributes, Proxied, Started
from nursery_graph import current_node
from rpc.api import ApiClient


class RemoteAttributes(Attributes, kw_only=True, frozen=True):
    """Attributes set by the plan."""

    link: Any  # the RemoteLink
    remote_name: str  # name of the resource on the remote


class RemoteResource(Proxied):
    """A resource of a remote. While the remote is not connected, it stays and its calls fail with the reason."""

    Config: ClassVar[type[Attributes]] = RemoteAttributes

    def remote(self) -> tuple[ApiClient, str]:
        """Return the client and the name on the remote. Raises MachineError (UNAVAILABLE) while it is not connected."""
        return self.attributes.link.connected(), self.attributes.remote_name

    async def run(self, *, task_status: Started) -> None:
        """Report the health of the resource until cancelled."""
        link, node = self.attributes.link, current_node()
        task_status.started()
        while True:
            news = link.news.next
            if problem := link.problem_of(self.name):
                node.unhealthy(problem)
            else:
                node.healthy()
            await news.wait()

    async def come_to_rest(self) -> None:
        """Stop the resource if this machine has commanded it. Motion commanded by others continues."""
        client = self.attributes.link.client
        if client is not None and client.has_commanded(self.API, self.attributes.remote_name):
            await self.stop()  # type: ignore[attr-defined]

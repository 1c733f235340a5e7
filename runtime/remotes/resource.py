"""A resource of a remote: every method is a call to the machine that has it."""

from __future__ import annotations

from typing import Any, ClassVar

from nursery_graph import current_node
from rpc.api.client import ApiClient
from runtime.proxy import Proxied
from runtime.resource import Attributes, Started


class RemoteAttributes(Attributes, kw_only=True, frozen=True):
    """What the plan tells the driver."""

    link: Any  # the RemoteLink
    there: str  # what the remote calls the resource


class RemoteResource(Proxied):
    """Lives as long as its remote has it, also while the remote is away: then calls fail with the reason."""

    Config: ClassVar[type[Attributes]] = RemoteAttributes

    def remote(self) -> tuple[ApiClient, str]:
        """The remote; MachineError (UNAVAILABLE) with the reason while it cannot be reached."""
        return self.attributes.link.connected(), self.attributes.there

    async def run(self, *, task_status: Started) -> None:
        """Say how the resource is, as far as that is known here."""
        link, node = self.attributes.link, current_node()
        task_status.started()
        while True:
            news = link.news
            if trouble := link.trouble(self.name):
                node.unhealthy(trouble)
            else:
                node.healthy()
            await news.wait()

    async def come_to_rest(self) -> None:
        """Stop it if it was commanded from here; what others do with it over there is theirs."""
        client = self.attributes.link.client
        if client is not None and client.has_commanded(self.API, self.attributes.there):
            await self.stop()  # type: ignore[attr-defined]

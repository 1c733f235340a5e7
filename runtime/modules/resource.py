"""A resource that a module provides: built and closed by the module, its methods forwarded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import trio

from rpc.api.client import ApiClient
from rpc.client import Channel
from runtime.modules.client import REMOVE_LIMIT
from runtime.proxy import Proxied
from runtime.resource import Attributes, Resource, Started, Unsupported
from schema.errors import MachineError
from schema.names import API


class ModuleAttributes(Attributes, kw_only=True, frozen=True):
    """What the plan tells the driver; the configuration itself is the module's to read."""

    link: Any  # the ModuleLink
    entry: Any  # the ResourceEntry
    level: str  # debug, info, warn or error: what it may log


class ModuleResource(Proxied):
    """Lives while its module does: it requires the module's node."""

    Config: ClassVar[type[Attributes]] = ModuleAttributes

    def remote(self) -> tuple[ApiClient, str]:
        """The module, which knows it by the same name."""
        return self.attributes.link.connected().calls, self.name.short

    async def run(self, *, task_status: Started) -> None:
        """Built when this becomes ready; closed by the module, within REMOVE_LIMIT, at the end."""
        link, entry = self.attributes.link, self.attributes.entry
        client = link.connected()
        try:
            await client.add(entry, self.attributes.level, [str(name) for name in self.dependencies])
            task_status.started()
            await trio.sleep_forever()
        finally:
            # Also if adding failed or was cancelled: the module may have built it all the same.
            with trio.move_on_after(REMOVE_LIMIT, shield=True) as limit:
                if link.client is client:
                    try:
                        await client.remove(entry)
                    except MachineError as error:
                        self.log.debug("the module had nothing to close", reason=str(error))
            if limit.cancelled_caught:
                self.log.error("the module did not close it in time", module=link.module.name, seconds=REMOVE_LIMIT)


class ForeignResource(ModuleResource):
    """A resource of an API that this machine has no class for: calls of its service are forwarded as they are."""

    def channel(self) -> Channel:
        """Where they go now; MachineError (UNAVAILABLE) if nowhere."""
        client: Channel = self.attributes.link.connected().channel
        return client

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """As other resources, if its service has the published method for it."""
        from runtime.modules.foreign import do_command

        api = self.attributes.link.apis.get(self.API)
        if api is None:
            raise Unsupported(f"{self.name} has no commands")
        return await do_command(self.channel(), api, self.name.short, command)


@cache
def foreign_class(api: API) -> type[Resource]:
    """The class of resources of such an API."""
    return type(f"Foreign{api.subtype.title()}", (ForeignResource,), {"API": api})

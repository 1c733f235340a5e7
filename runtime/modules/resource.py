"""A resource that a module provides: built and closed by the module, its methods forwarded."""

from __future__ import annotations

from typing import Any, ClassVar

import trio

from rpc.api.client import ApiClient
from runtime.modules.client import REMOVE_LIMIT
from runtime.proxy import Proxied
from runtime.resource import Attributes, Started
from schema.errors import MachineError


class ModuleAttributes(Attributes, kw_only=True, frozen=True):
    """What the plan tells the driver; the configuration itself is the module's to read."""

    link: Any  # the ModuleLink
    entry: Any  # the ResourceEntry


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
            await client.add(entry, [str(name) for name in self.dependencies])
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

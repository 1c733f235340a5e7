"""Resources that a module provides: the module builds and closes them, and method calls are forwarded to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import trio

from engine import Attributes, Proxied, Resource, Started, Unsupported, base_of, proxy_of
from engine.planning import PlannedResource, plan_resource
from rpc.api import ApiClient
from rpc.client import Channel
from runtime.parts.modules.client import REMOVE_LIMIT
from runtime.parts.modules.link import ModuleLink
from schema import API, ConfigError, Directory, MachineError
from schema.document import WORDS, ResourceEntry
from telemetry.logs import Rules
from telemetry.logs.logger_names import of_module


class ModuleAttributes(Attributes, kw_only=True, frozen=True):
    """Attributes set by the plan. The module reads the resource's configuration itself."""

    link: Any  # the ModuleLink
    entry: Any  # the ResourceEntry
    level: str  # log level: debug, info, warn or error


class ModuleResource(Proxied):
    """A resource of a module. It requires the module's node, so it stops with the module."""

    Config: ClassVar[type[Attributes]] = ModuleAttributes

    def remote(self) -> tuple[ApiClient, str]:
        """Return the module's client, and the name of the resource there, which is the same."""
        return self.attributes.link.connected().calls, self.name.short

    async def run(self, *, task_status: Started) -> None:
        """Let the module build the resource, and close it at the end, within REMOVE_LIMIT seconds."""
        link, entry = self.attributes.link, self.attributes.entry
        client = link.connected()
        try:
            await client.add(entry, self.attributes.level, [str(name) for name in self.dependencies])
            task_status.started()
            await trio.sleep_forever()
        finally:
            # Necessary even if adding failed or was cancelled: the module may have built it nevertheless.
            with trio.move_on_after(REMOVE_LIMIT, shield=True) as limit:
                if link.client is client:
                    try:
                        await client.remove(entry)
                    except MachineError as error:
                        self.log.debug("the module had nothing to close", reason=str(error))
            if limit.cancelled_caught:
                self.log.error(
                    "the module did not close the resource in time", module=link.module.name, seconds=REMOVE_LIMIT
                )


class ForeignResource(ModuleResource):
    """A resource of an API that this machine has no class for; calls of its service are forwarded unchanged."""

    def channel(self) -> Channel:
        """Return the channel for forwarded calls. Raises MachineError (UNAVAILABLE) while the module is not ready."""
        client: Channel = self.attributes.link.connected().channel
        return client

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a command for which the API has no method; the driver documents its commands.

        Raises Unsupported if the API is not known yet.
        """
        from runtime.parts.modules.foreign import do_command

        api = self.attributes.link.apis.get(self.API)
        if api is None:
            raise Unsupported(f"{self.name} does not support do_command")
        return await do_command(self.channel(), api, self.name.short, command)


@cache
def foreign_class(api: API) -> type[Resource]:
    """Return the resource class for an API that this machine has no class for."""
    return type(f"Foreign{api.subtype.title()}", (ForeignResource,), {"API": api})


def plan_module_resource(
    link: ModuleLink, entry: ResourceEntry, directory: Directory, levels: Rules
) -> PlannedResource:
    """Return the resource that a module offers for `entry`; raises ConfigError."""
    base: Any = base_of(entry.api)
    if base is not None:
        cls = proxy_of(base, ModuleResource)
    elif entry.api in link.apis:
        cls = foreign_class(entry.api)
    else:
        raise ConfigError(
            entry.path,
            f"{entry.api} is defined by the module {link.module.name!r}, but its descriptor is missing: "
            f"{link.faults.get(entry.api, 'the module names no service for it')}",
            value=str(entry.api),
            remedy="serve gRPC reflection in the module, as the official SDKs do",
        )
    needs = link.needs(entry)
    if needs is None:
        raise ConfigError(entry.path, f"the module {link.module.name!r} has not validated the attributes yet")
    if needs.error:
        verb = "did not validate them and is asked again" if needs.silent else "rejects them"
        raise ConfigError(f"{entry.path}.attributes", f"the module {link.module.name!r} {verb}: {needs.error}")
    level = WORDS[levels.level(f"{of_module(link.module.name)}.{entry.name}")]
    attributes = ModuleAttributes(link=link, entry=entry, level=level)
    planned = plan_resource(entry, directory, cls, attributes, needs.required, needs.optional)
    return replace(planned, requires=planned.requires | {link.node}, version=(entry.version, link.node, level))

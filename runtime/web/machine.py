"""The pages' view of the real machine. Calls take the way of RPC, only without a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final, cast

from rpc.api.arguments import parse_arguments
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from rpc.api.router import ApiRouter
from runtime.apis import BASES, base_of
from runtime.dispatch import Dispatch
from runtime.machine import Machine
from runtime.resource import Actuator
from runtime.status import MachineStatus
from runtime.stop import stop_all
from runtime.web.methods import methods_of
from runtime.web.source import LogEntry, Method, Picture
from schema.errors import ConfigError, ErrorKind, MachineError
from schema.names import ResourceName
from schema.secrets import masked
from telemetry.entry import Entry, fields_json

RESOURCE_LOGGER: Final = "rdk.resource_manager."  # a resource's logger is this and its full name


class MachineSource:
    """Implements `runtime.web.source.Source`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._client = ApiClient(MemoryChannel(ApiRouter(Dispatch(machine), bases=BASES)))

    def status(self) -> MachineStatus:
        """The facts of now."""
        return self._machine.status()

    def changes(self) -> Sequence[AsyncIterator[object]]:
        """Of the graph; and of the log, because whatever else the status shows is logged when it changes."""
        return [aiter(self._machine.graph.changes()), self.log_changes(self._machine.log_ring.last)]

    def module_server(self) -> str:
        """Where modules that speak TCP find this machine; empty without one."""
        modules = self._machine.modules
        return modules.tcp_address if modules is not None else ""

    async def ask_maintenance(self) -> None:
        """As Source."""
        await self._machine.ask_maintenance()

    def attributes(self, name: str) -> Mapping[str, Any] | None:
        """As in the configuration in force, secrets masked."""
        document = self._machine.document
        for entry in (*document.components, *document.services):
            if str(entry.name) == name:
                shown: Mapping[str, Any] = masked(entry.attributes)
                return shown
        return None

    def methods(self, name: str) -> Sequence[Method]:
        """Those of its API."""
        full = _parse(name)
        return methods_of(full.api) if full is not None else ()

    def is_actuator(self, name: str) -> bool:
        """By its API; for a ready resource by its driver too, since some APIs move only sometimes."""
        host = self._machine.hosts.get(name)
        if host is not None and isinstance(host.resource, Actuator):
            return True
        full = _parse(name)
        base = base_of(full.api) if full is not None else None
        return base is not None and issubclass(base, Actuator)

    async def call(self, name: str, method: str, arguments: Mapping[str, str]) -> object:
        """As a client would; the arguments are read as on the command line."""
        full = self._full(name)
        parsed = parse_arguments(str(full.api), method, [f"{key}={text}" for key, text in arguments.items()])
        result: object = await self._client.call(full.api, full.short, method, **parsed)
        return result

    async def picture(self, name: str) -> Picture:
        """The first image that the camera gives."""
        full = self._full(name)
        reply = await self._client.call(full.api, full.short, "get_images")
        for image in reply.get("images", ()):
            return Picture(image["image"], image.get("mime_type") or "image/jpeg")
        raise MachineError(f"{name} gave no image", kind=ErrorKind.UNAVAILABLE)

    async def stop_all(self) -> None:
        """Every actuator, and every other call is cancelled."""
        await stop_all(self._machine)

    def logs(self, since: int = 0) -> Sequence[LogEntry]:
        """Of the ring."""
        return [_log_entry(entry) for entry in self._machine.log_ring.entries(since)]

    async def log_changes(self, since: int) -> AsyncGenerator[object, None]:
        """Of the ring."""
        entries = cast("AsyncGenerator[object, None]", self._machine.log_ring.changes(since))
        async with aclosing(entries) as stream:
            async for new in stream:
                yield new

    def _full(self, name: str) -> ResourceName:
        """The name of a configured resource, given in full or simply; raises MachineError."""
        if name in self._machine.wanted:
            return ResourceName.parse(name)
        return self._machine.find(name).name


def _parse(name: str) -> ResourceName | None:
    try:
        return ResourceName.parse(name)
    except ConfigError:
        return None


def _log_entry(entry: Entry) -> LogEntry:
    resource = entry.logger.removeprefix(RESOURCE_LOGGER) if entry.logger.startswith(RESOURCE_LOGGER) else ""
    return LogEntry(
        seq=entry.seq,
        time=datetime.fromtimestamp(entry.time, UTC),
        level=entry.level_name.lower(),
        logger=entry.logger,
        message=f"{entry.message}\n{entry.trace.rstrip()}" if entry.trace else entry.message,
        resource=resource,
        fields=fields_json(entry.fields) if entry.fields else "",
        caller=entry.caller,
    )

"""The view of a real machine for pages. Calls use RPC in memory, without a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final, cast

from engine import BASES, Actuator, base_of
from engine.calls import Dispatch, stop_all
from engine.views import MachineStatus, Method, Picture, ShownEntry
from rpc.api import ApiClient, ApiRouter, MemoryChannel, parse_arguments
from runtime.parts.web.methods import methods_of
from runtime.server.machine import Machine
from schema import ConfigError, ErrorKind, MachineError, ResourceName, masked
from telemetry.logs import Entry, fields_json

RESOURCE_LOGGER: Final = "rdk.resource_manager."  # prefix of the loggers of resources


class MachineSource:
    """Implements `engine.views.source.PageSource`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._client = ApiClient(MemoryChannel(ApiRouter(Dispatch(machine.roster, machine.traffic), bases=BASES)))

    def status(self) -> MachineStatus:
        """Return the current status."""
        return self._machine.status()

    def changes(self) -> Sequence[AsyncIterator[object]]:
        """Return changes of the graph and of the log, because all other changes of the status are logged."""
        return [aiter(self._machine.graph.changes()), self.log_changes(self._machine.log_ring.last)]

    def module_server(self) -> str:
        """Return the address at which modules connect by TCP; empty if there is none."""
        modules = self._machine.parts.modules
        return modules.tcp_address if modules is not None else ""

    async def statistics(self, start: int, end: int, points: int) -> dict[str, Any]:
        """Return the course of the machine's own statistics; nothing with `-ftdc=false`."""
        return await self._machine.history.series(start, end, points)

    async def ask_maintenance(self) -> None:
        """Read the maintenance sensor now; see Source."""
        await self._machine.configured.ask_maintenance()

    def attributes(self, name: str) -> Mapping[str, Any] | None:
        """Return the attributes in the active configuration, with secrets masked."""
        document = self._machine.configured.document
        for entry in (*document.components, *document.services):
            if str(entry.name) == name:
                shown: Mapping[str, Any] = masked(entry.attributes)
                return shown
        return None

    def methods(self, name: str) -> Sequence[Method]:
        """Return the methods of the resource's API."""
        full = _parse(name)
        return methods_of(full.api) if full is not None else ()

    def is_actuator(self, name: str) -> bool:
        """Return whether its API, or its driver if it is ready, can move something."""
        host = self._machine.roster.hosts.get(name)
        if host is not None and isinstance(host.resource, Actuator):
            return True
        full = _parse(name)
        base = base_of(full.api) if full is not None else None
        return base is not None and issubclass(base, Actuator)

    async def call(self, name: str, method: str, arguments: Mapping[str, str]) -> object:
        """Call a method like a client; the arguments are parsed as on the command line."""
        full = self._full(name)
        parsed = parse_arguments(str(full.api), method, [f"{key}={text}" for key, text in arguments.items()])
        result: object = await self._client.call(full.api, full.short, method, **parsed)
        return result

    async def picture(self, name: str) -> Picture:
        """Return the first image of the camera."""
        full = self._full(name)
        reply = await self._client.call(full.api, full.short, "get_images")
        for image in reply.get("images", ()):
            return Picture(image["image"], image.get("mime_type") or "image/jpeg")
        raise MachineError(f"{name} returned no image", kind=ErrorKind.UNAVAILABLE)

    async def stop_all(self) -> None:
        """Stop every actuator and cancel all calls."""
        await stop_all(self._machine.roster, self._machine.traffic.operations, self._machine.traffic.sessions)

    def logs(self, since: int = 0) -> Sequence[ShownEntry]:
        """Return the entries of the log ring with a number above `since`."""
        return [_log_entry(entry) for entry in self._machine.log_ring.entries(since)]

    async def log_changes(self, since: int) -> AsyncGenerator[object, None]:
        """Yield when the log ring has entries above `since`."""
        entries = cast("AsyncGenerator[object, None]", self._machine.log_ring.changes(since))
        async with aclosing(entries) as stream:
            async for entry in stream:
                yield entry

    def _full(self, name: str) -> ResourceName:
        """Return the name of a configured resource from its full or short name; raises MachineError."""
        if name in self._machine.roster.planned:
            return ResourceName.parse(name)
        return self._machine.roster.find(name).name


def _parse(name: str) -> ResourceName | None:
    try:
        return ResourceName.parse(name)
    except ConfigError:
        return None


def _log_entry(entry: Entry) -> ShownEntry:
    resource = entry.logger.removeprefix(RESOURCE_LOGGER) if entry.logger.startswith(RESOURCE_LOGGER) else ""
    return ShownEntry(
        seq=entry.seq,
        time=datetime.fromtimestamp(entry.time, UTC),
        level=entry.level_name.lower(),
        logger=entry.logger,
        message=f"{entry.message}\n{entry.trace.rstrip()}" if entry.trace else entry.message,
        resource=resource,
        fields=fields_json(entry.fields) if entry.fields else "",
        caller=entry.caller,
    )

"""The server's side of the module protocol: what is asked of a module."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trio

from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from schema.machine import ResourceEntry
from schema.names import API, Model

SERVICE: Final = "viam.module.v1.ModuleService"
READY_LIMIT: Final = 3.0  # seconds for one answer; reference value
READY_PAUSE: Final = 0.2  # seconds between questions to a module that is not ready; reference value
VALIDATE_LIMIT: Final = 5.0  # seconds; reference value
REMOVE_LIMIT: Final = 20.0  # seconds; reference value
_NOT_YET: Final = (ErrorKind.UNAVAILABLE, ErrorKind.EXHAUSTED, ErrorKind.TIMEOUT, ErrorKind.CANCELLED)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a resource of a module depends on, as the module says; or why its configuration is wrong."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    error: str = ""


class ModuleClient:
    """Speaks to one module over `calls`."""

    def __init__(self, calls: ApiClient, name: str) -> None:
        self.calls = calls
        self._name = name

    async def ready(self, parent: Path) -> frozenset[tuple[API, Model]]:
        """Wait until the module says that it is ready; what it offers. Without end: the caller sets the limit."""
        while True:
            try:
                with trio.move_on_after(READY_LIMIT):
                    answer = await self.calls.call(
                        SERVICE, "", "ready", parent_address=str(parent), raw_parent_address=str(parent)
                    )
                    if answer["ready"]:
                        return _offers(answer["handlermap"] or {})
            except MachineError as error:
                if error.kind not in _NOT_YET:
                    raise
            await trio.sleep(READY_PAUSE)

    async def validate(self, entry: ResourceEntry) -> Needs:
        """Ask about an entry. A module that does not answer in time, or cannot be asked, has no objection."""
        with trio.move_on_after(VALIDATE_LIMIT):
            try:
                answer = await self.calls.call(SERVICE, "", "validate_config", config=config_of(entry))
            except MachineError as error:
                return Needs() if error.kind is ErrorKind.UNSUPPORTED else Needs(error=error.message)
            return Needs(_known(answer["dependencies"]), _known(answer["optional_dependencies"]))
        return Needs(error=f"the module {self._name} did not answer within {VALIDATE_LIMIT:g} s")

    async def add(self, entry: ResourceEntry, dependencies: Iterable[str]) -> None:
        """Have the resource built. MachineError as the module says."""
        await self.calls.call(SERVICE, "", "add_resource", config=config_of(entry), dependencies=sorted(dependencies))

    async def remove(self, entry: ResourceEntry) -> None:
        """Have the resource closed."""
        await self.calls.call(SERVICE, "", "remove_resource", name=str(entry.name))


def config_of(entry: ResourceEntry) -> dict[str, Any]:
    """An entry as the protocol writes it."""
    return {
        "name": entry.name.name,
        "namespace": entry.name.api.namespace,
        "type": entry.name.api.subtype,
        "api": str(entry.name.api),
        "model": str(entry.model),
        "attributes": dict(entry.attributes),
        "depends_on": list(entry.depends_on),
        "service_configs": [{"type": one.type, "attributes": one.attributes} for one in entry.service_configs],
        **(
            {"log_configuration": {"level": entry.log_configuration.level}}
            if entry.log_configuration is not None
            else {}
        ),
    }


def _offers(handlermap: dict[str, Any]) -> frozenset[tuple[API, Model]]:
    return frozenset(
        (API.parse(handler["subtype"]["subtype"].partition("/")[0]), Model.parse(model))
        for handler in handlermap.get("handlers", ())
        for model in handler["models"]
    )


def _known(names: Iterable[str]) -> tuple[str, ...]:
    """Without the frame system, which is no resource here."""
    return tuple(name for name in names if name.lstrip("$") != "framesystem")

"""The service that a machine calls in a module: viam.module.v1.ModuleService."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from runtime.sdk.entries import read_attributes, read_entry
from runtime.sdk.parent import Parent
from runtime.sdk.resources import Resources
from schema import ConfigError, ErrorKind, MachineError, ResourceName

SERVICE: Final = "viam.module.v1.ModuleService"


@dataclass(frozen=True, slots=True)
class ReadyResponse:
    """The module is ready, and offers the models in `handlermap`."""

    ready: bool
    handlermap: Mapping[str, Any]
    webrtc_answer: str = ""  # there are no video tracks; the machine requests images


@dataclass(frozen=True, slots=True)
class ValidateConfigResponse:
    """The dependencies of a resource with this configuration."""

    dependencies: Sequence[str]
    optional_dependencies: Sequence[str]


class ModuleService:
    """Implements the RPCs, one method each."""

    def __init__(self, parent: Parent, resources: Resources) -> None:
        self._parent = parent
        self._resources = resources

    async def ready(self, parent_address: str, raw_parent_address: str, webrtc_offer: str) -> ReadyResponse:
        """Record the address of the machine, and return the offers."""
        self._parent.introduce(raw_parent_address or parent_address)
        return ReadyResponse(ready=True, handlermap={"handlers": self._resources.offers.handlers()})

    async def validate_config(self, config: Mapping[str, Any]) -> ValidateConfigResponse:
        """Validate a resource's configuration and return its dependencies; INVALID_ARGUMENT with paths if wrong."""
        entry = read_entry(config)
        _, attributes, _ = read_attributes(entry, self._resources.offers)
        try:
            required, optional = list(attributes.requires()), list(attributes.uses())
        except MachineError:
            raise
        except Exception as error:  # from the driver's code
            raise ConfigError("attributes", f"{entry.model} cannot read its attributes: {error!r}") from error
        return ValidateConfigResponse(required, [name for name in optional if name not in required])

    async def add_resource(self, config: Mapping[str, Any], dependencies: Sequence[str]) -> None:
        """Add a resource; returns when it is ready."""
        await self._resources.add(read_entry(config), map(_full_name, dependencies))

    async def reconfigure_resource(self, config: Mapping[str, Any], dependencies: Sequence[str]) -> None:
        """Replace a resource, and restart its dependents in this module."""
        await self._resources.add(read_entry(config), map(_full_name, dependencies))

    async def remove_resource(self, name: str) -> None:
        """Remove a resource; returns when it has stopped."""
        await self._resources.remove(name)


def _full_name(text: str) -> ResourceName:
    try:
        return ResourceName.parse(text, path="dependencies")
    except ConfigError as error:
        raise MachineError(str(error), kind=ErrorKind.INVALID) from error

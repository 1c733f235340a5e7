"""What a module answers its machine: viam.module.v1.ModuleService."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from runtime.module.entries import read_attributes, read_entry
from runtime.module.parent import Parent
from runtime.module.resources import Resources
from schema.errors import ConfigError, ErrorKind, MachineError
from schema.names import ResourceName

SERVICE: Final = "viam.module.v1.ModuleService"


@dataclass(frozen=True, slots=True)
class ReadyResponse:
    """The module may be used, and offers this."""

    ready: bool
    handlermap: Mapping[str, Any]
    webrtc_answer: str = ""  # no video tracks: the machine asks for images


@dataclass(frozen=True, slots=True)
class ValidateConfigResponse:
    """What a resource of this configuration depends on."""

    dependencies: Sequence[str]
    optional_dependencies: Sequence[str]


class ModuleService:
    """Methods are the RPCs."""

    def __init__(self, parent: Parent, resources: Resources) -> None:
        self._parent = parent
        self._resources = resources

    async def ready(self, parent_address: str, raw_parent_address: str, webrtc_offer: str) -> ReadyResponse:
        """The machine introduces itself and asks what there is."""
        self._parent.introduce(raw_parent_address or parent_address)
        return ReadyResponse(ready=True, handlermap={"handlers": self._resources.offers.handlers()})

    async def validate_config(self, config: Mapping[str, Any]) -> ValidateConfigResponse:
        """Whether a driver can be built from this; INVALID_ARGUMENT with paths otherwise."""
        entry = read_entry(config)
        _, attributes, _ = read_attributes(entry, self._resources.offers)
        try:
            required, optional = list(attributes.requires()), list(attributes.uses())
        except MachineError:
            raise
        except Exception as error:  # the driver's own code
            raise ConfigError("attributes", f"{entry.model} cannot read them: {error!r}") from error
        return ValidateConfigResponse(required, [name for name in optional if name not in required])

    async def add_resource(self, config: Mapping[str, Any], dependencies: Sequence[str]) -> None:
        """Build a resource; answered when it is ready."""
        await self._resources.add(read_entry(config), map(_full_name, dependencies))

    async def reconfigure_resource(self, config: Mapping[str, Any], dependencies: Sequence[str]) -> None:
        """Build a resource anew; what depends on it here is built anew, too."""
        await self._resources.add(read_entry(config), map(_full_name, dependencies))

    async def remove_resource(self, name: str) -> None:
        """Stop a resource; answered when it has stopped."""
        await self._resources.remove(name)


def _full_name(text: str) -> ResourceName:
    try:
        return ResourceName.parse(text, path="dependencies")
    except ConfigError as error:
        raise MachineError(str(error), kind=ErrorKind.INVALID) from error

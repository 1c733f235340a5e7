"""Discovery service: finds hardware and says how to configure it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from runtime.resource import Extra, Service
from schema.names import API


@dataclass(frozen=True, slots=True)
class Discovery:
    """A configuration entry that would work for a device that was found, as in the machine's document."""

    name: str
    api: str
    model: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    depends_on: Sequence[str] = ()


class DiscoveryService(Service):
    """Something that looks for devices."""

    API: ClassVar[API] = API("rdk", "service", "discovery")

    async def discover_resources(self, *, extra: Extra = None) -> Sequence[Discovery]:
        """Look now; one entry for each device found."""
        raise NotImplementedError

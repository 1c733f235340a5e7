"""Discovery service: finds hardware and suggests a configuration for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from engine.resource import Extra, Service
from schema import API


@dataclass(frozen=True, slots=True)
class Discovery:
    """A configuration entry for a discovered device, in the form used in the machine configuration."""

    name: str
    api: str
    model: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    depends_on: Sequence[str] = ()


class DiscoveryService(Service):
    """A service that searches for devices."""

    API: ClassVar[API] = API("rdk", "service", "discovery")

    async def discover_resources(self, *, extra: Extra = None) -> Sequence[Discovery]:
        """Search now, and return an entry for each device found."""
        raise NotImplementedError

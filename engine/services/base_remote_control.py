"""Base remote control: drives a base with an input controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from engine.resource import Actuator, Extra, Service
from schema import API


class BaseRemoteControl(Actuator, Service):
    """A service that drives a base with the controls of an input controller.

    Official SDKs have no calls for it. After `stop`, the base drives again only when all controls have been at rest.
    """

    API: ClassVar[API] = API("rdk", "service", "base_remote_control")

    async def controller_inputs(self, *, extra: Extra = None) -> Sequence[str]:
        """Return the names of the controls that drive the base."""
        raise NotImplementedError

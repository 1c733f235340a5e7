"""Attributes of the simulated movement sensor. Pure."""

from __future__ import annotations

from schema import Attributes


class FakeMovementSensorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated movement sensor."""

    base: str = ""  # name of the simulated base that carries the sensor; without a base, the measurements are constant

    def requires(self) -> list[str]:
        """Require the base, if configured."""
        return [self.base] if self.base else []

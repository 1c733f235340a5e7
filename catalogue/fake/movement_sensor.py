"""Attributes that `runtime.builtin.fake.movement_sensor` reads."""

from __future__ import annotations

from schema.attributes import Attributes


class FakeMovementSensorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated movement sensor."""

    base: str = ""  # name of a simulated base it rides on; without one the measurements are fixed

    def requires(self) -> list[str]:
        """The base it rides on."""
        return [self.base] if self.base else []

"""Attributes of `sensors`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from schema import Attributes


class AllSensorsConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the sensors service."""

    sensors: tuple[str, ...] = ()  # names of sensors; empty: all. Missing sensors are skipped

    def uses(self) -> Sequence[str]:
        """Use the named sensors that are present."""
        return self.sensors

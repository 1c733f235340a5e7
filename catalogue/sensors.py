"""Attributes that `runtime.builtin.sensors` reads."""

from __future__ import annotations

from collections.abc import Sequence

from schema.attributes import Attributes


class AllSensorsConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the sensors service."""

    sensors: tuple[str, ...] = ()  # names of sensors; none means all. One that is not there now is left out

    def uses(self) -> Sequence[str]:
        """The named sensors, each if it is there."""
        return self.sensors

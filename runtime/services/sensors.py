"""Sensors service: readings of many sensors in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from runtime.resource import Extra, Service, Value
from schema.names import API, ResourceName


@dataclass(frozen=True, slots=True)
class SensorReadings:
    """Readings of one sensor."""

    name: ResourceName
    readings: Mapping[str, Value]


class Sensors(Service):
    """All sensors of a machine at once."""

    API: ClassVar[API] = API("rdk", "service", "sensors")

    async def get_sensors(self, *, extra: Extra = None) -> Sequence[ResourceName]:
        """Everything on the machine that has readings."""
        raise NotImplementedError

    async def get_readings(
        self, sensor_names: Sequence[ResourceName], *, extra: Extra = None
    ) -> Sequence[SensorReadings]:
        """Readings of each of the named sensors."""
        raise NotImplementedError

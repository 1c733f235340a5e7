"""Sensors service: returns readings of several sensors in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from engine.resource import Extra, Service, Value
from schema import API, ResourceName


@dataclass(frozen=True, slots=True)
class SensorReadings:
    """Readings of one sensor."""

    name: ResourceName
    readings: Mapping[str, Value]


class Sensors(Service):
    """A service for all sensors of a machine."""

    API: ClassVar[API] = API("rdk", "service", "sensors")

    async def get_sensors(self, *, extra: Extra = None) -> Sequence[ResourceName]:
        """Return the names of all resources that have readings."""
        raise NotImplementedError

    async def get_readings(
        self, sensor_names: Sequence[ResourceName], *, extra: Extra = None
    ) -> Sequence[SensorReadings]:
        """Return the readings of each named sensor."""
        raise NotImplementedError

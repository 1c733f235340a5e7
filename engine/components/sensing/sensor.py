"""Sensor: named readings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine.resource import Component, Extra, Value
from schema import API


class Sensor(Component):
    """A source of readings."""

    API: ClassVar[API] = API("rdk", "component", "sensor")

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return readings by name, in units that the driver documents; put the unit in the name (`temperature_c`)."""
        raise NotImplementedError

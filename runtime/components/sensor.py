"""Sensor: named readings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from runtime.resource import Component, Extra, Value
from schema.names import API


class Sensor(Component):
    """Anything that can be read."""

    API: ClassVar[API] = API("rdk", "component", "sensor")

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Readings by name, in the units the driver documents; put the unit in the name (`temperature_c`)."""
        raise NotImplementedError

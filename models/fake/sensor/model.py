"""A simulated sensor with constant readings and simulated quantities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from engine import Attributes, Extra, Sensor, Value, model
from models.fake.common.simulated import SimulatedResource
from models.fake.sensor.attributes import FakeSensorConfig

READINGS: Final[Mapping[str, Value]] = {"a": 1, "b": 2, "c": 3}


@model("rdk:builtin:fake")
class FakeSensor(SimulatedResource, Sensor):
    """Returns the configured readings; simulated quantities have some seeded noise."""

    Config: ClassVar[type[Attributes]] = FakeSensorConfig

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return the constant readings and the simulated quantities."""
        await self.access()
        config: FakeSensorConfig = self.attributes
        constants = config.readings
        if constants is None:
            constants = {} if config.quantities else dict(READINGS)
        quantities = self.world.quantities() if config.quantities else {}
        return {**constants, **{name: quantities[name] for name in config.quantities}}

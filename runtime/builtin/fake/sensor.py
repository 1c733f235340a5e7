"""A simulated sensor: fixed readings, and whatever it is told to feel of the bench."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from catalogue.fake.sensor import FakeSensorConfig
from runtime.builtin.fake.bench import OnBench
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Extra, Value

READINGS: Final[Mapping[str, Value]] = {"a": 1, "b": 2, "c": 3}


class FakeSensor(OnBench, Sensor):
    """Readings by name; quantities of the bench carry a little seeded noise."""

    Config: ClassVar[type[Attributes]] = FakeSensorConfig

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """The fixed readings, then the quantities."""
        await self.access()
        config: FakeSensorConfig = self.attributes
        fixed = config.readings
        if fixed is None:
            fixed = {} if config.quantities else dict(READINGS)
        felt = self.world.quantities() if config.quantities else {}
        return {**fixed, **{name: felt[name] for name in config.quantities}}

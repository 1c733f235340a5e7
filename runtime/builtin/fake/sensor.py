"""A simulated sensor: fixed readings, and whatever it is told to feel of the bench."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from runtime.builtin.fake.bench import OnBench
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Extra, Value

READINGS: Final[Mapping[str, Value]] = {"a": 1, "b": 2, "c": 3}
QUANTITIES: Final = ("temperature_c", "light_lux", "supply_v", "supply_a", "supply_w")


class FakeSensorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated sensor."""

    readings: dict[str, Any] | None = None  # fixed readings; {"a": 1, "b": 2, "c": 3} if nothing is configured
    quantities: tuple[str, ...] = ()  # of the bench: temperature_c, light_lux, supply_v, supply_a, supply_w

    def __post_init__(self) -> None:
        for name in self.quantities:
            if name not in QUANTITIES:
                raise ValueError(f"quantity {name!r} is not one of {', '.join(QUANTITIES)}")


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

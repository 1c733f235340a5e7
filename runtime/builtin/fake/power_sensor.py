"""A simulated power sensor in the supply line of the bench."""

from __future__ import annotations

from runtime.builtin.fake.bench import OnBench
from runtime.components.power_sensor import Current, PowerSensor, Voltage
from runtime.resource import Extra


class FakePowerSensor(OnBench, PowerSensor):
    """The supply's voltage sags and its current rises with what works on the bench. Direct current."""

    async def get_voltage(self, *, extra: Extra = None) -> Voltage:
        """Volts at the supply."""
        await self.access()
        return Voltage(self.world.volts())

    async def get_current(self, *, extra: Extra = None) -> Current:
        """Amperes from the supply."""
        await self.access()
        return Current(self.world.current())

    async def get_power(self, *, extra: Extra = None) -> float:
        """Watts from the supply."""
        await self.access()
        return self.world.volts() * self.world.current()

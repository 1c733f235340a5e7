"""A simulated power sensor in the supply line of the simulated devices."""

from __future__ import annotations

from engine import Current, Extra, PowerSensor, Voltage, model
from models.fake.common.simulated import SimulatedResource


@model("rdk:builtin:fake")
class FakePowerSensor(SimulatedResource, PowerSensor):
    """Direct current. Voltage falls and current rises with the load of the simulated devices."""

    async def get_voltage(self, *, extra: Extra = None) -> Voltage:
        """Return the voltage of the supply."""
        await self.access()
        return Voltage(self.world.volts())

    async def get_current(self, *, extra: Extra = None) -> Current:
        """Return the current from the supply."""
        await self.access()
        return Current(self.world.current())

    async def get_power(self, *, extra: Extra = None) -> float:
        """Return the power from the supply."""
        await self.access()
        return self.world.volts() * self.world.current()

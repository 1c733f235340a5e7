"""The sensors service: everything with readings among its dependencies, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import trio

from catalogue.sensors import AllSensorsConfig
from runtime.components.movement_sensor import MovementSensor
from runtime.components.power_sensor import PowerSensor
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Door, Extra, Value
from runtime.services.sensors import SensorReadings, Sensors
from schema.errors import ErrorKind, MachineError
from schema.names import ResourceName
from support.gather import gather


class AllSensors(Sensors):
    """Reads sensors concurrently. Its sensors are those named in `sensors`, else all, and those it depends on."""

    Config: ClassVar[type[Attributes]] = AllSensorsConfig

    def _sensors(self) -> dict[ResourceName, Door]:
        every = not self.attributes.sensors
        return {
            name: door
            for base in (Sensor, MovementSensor, PowerSensor)
            for name, door in self.others(base.API).items()
            if name in self.dependencies or (every and not name.remotes)
        }

    async def get_sensors(self, *, extra: Extra = None) -> Sequence[ResourceName]:
        """Those that are there, sorted."""
        await trio.lowlevel.checkpoint()
        return sorted(self._sensors())

    async def get_readings(
        self, sensor_names: Sequence[ResourceName], *, extra: Extra = None
    ) -> Sequence[SensorReadings]:
        """Readings of each, in the order of the names; NOT_FOUND if one is missing, its own error if one fails."""
        there = self._sensors()
        for name in sensor_names:
            if name not in there:
                raise MachineError(
                    f"{name} is not a sensor of {self.name}",
                    kind=ErrorKind.NOT_FOUND,
                    remedy="name it in the attribute 'sensors'",
                )
        results: dict[ResourceName, dict[str, Value]] = {}

        async def read(name: ResourceName) -> None:
            async with there[name].use() as sensor:
                assert isinstance(sensor, Sensor)
                results[name] = dict(await sensor.get_readings(extra=extra))

        await gather(*(partial(read, name) for name in set(sensor_names)))
        return [SensorReadings(name, results[name]) for name in sensor_names]

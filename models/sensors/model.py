"""The sensors service: readings of many sensors in one call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import trio

from engine import (
    Attributes,
    Extra,
    MovementSensor,
    PowerSensor,
    ResourceAccess,
    Sensor,
    SensorReadings,
    Sensors,
    Value,
    model,
)
from models.sensors.attributes import AllSensorsConfig
from schema import ErrorKind, MachineError, ResourceName
from support import gather


@model("rdk:builtin:builtin", "rdk:builtin:fake")
class AllSensors(Sensors):
    """Reads sensors concurrently: those named in `sensors` (default: all) and those that it depends on."""

    Config: ClassVar[type[Attributes]] = AllSensorsConfig

    def _sensors(self) -> dict[ResourceName, ResourceAccess]:
        use_all = not self.attributes.sensors
        return {
            name: door
            for base in (Sensor, MovementSensor, PowerSensor)
            for name, door in self.others(base.API).items()
            if name in self.dependencies or (use_all and not name.remotes)
        }

    async def get_sensors(self, *, extra: Extra = None) -> Sequence[ResourceName]:
        """Return the names of the available sensors, sorted."""
        await trio.lowlevel.checkpoint()
        return sorted(self._sensors())

    async def get_readings(
        self, sensor_names: Sequence[ResourceName], *, extra: Extra = None
    ) -> Sequence[SensorReadings]:
        """Return the readings in the order of the names. NOT_FOUND if a sensor is missing."""
        available = self._sensors()
        for name in sensor_names:
            if name not in available:
                raise MachineError(
                    f"{name} is not a sensor of {self.name}",
                    kind=ErrorKind.NOT_FOUND,
                    remedy="add it to the attribute 'sensors'",
                )
        results: dict[ResourceName, dict[str, Value]] = {}

        async def read(name: ResourceName) -> None:
            async with available[name].use() as sensor:
                assert isinstance(sensor, Sensor)
                results[name] = dict(await sensor.get_readings(extra=extra))

        await gather(*(partial(read, name) for name in set(sensor_names)))
        return [SensorReadings(name, results[name]) for name in sensor_names]

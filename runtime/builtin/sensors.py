"""The sensors service: everything with readings among its dependencies, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import trio

from runtime.builtin.together import together
from runtime.components.movement_sensor import MovementSensor
from runtime.components.power_sensor import PowerSensor
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Extra, Value
from runtime.services.sensors import SensorReadings, Sensors
from schema.errors import ErrorKind, MachineError
from schema.names import ResourceName


class AllSensorsConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the sensors service."""

    sensors: tuple[str, ...] = ()  # names of sensors; none means all. One that is not there now is left out

    def uses(self) -> Sequence[str]:
        """The named sensors, each if it is there; without names all."""
        return self.sensors or [f"{base.API}/*" for base in (Sensor, MovementSensor, PowerSensor)]


class AllSensors(Sensors):
    """Reads sensors concurrently. Its sensors are those named in `sensors`, else all, and those it depends on."""

    Config: ClassVar[type[Attributes]] = AllSensorsConfig

    def _sensors(self) -> dict[ResourceName, Sensor]:
        return {name: one for name, one in self.dependencies.items() if isinstance(one, Sensor)}

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
            results[name] = dict(await there[name].get_readings(extra=extra))

        await together(*(partial(read, name) for name in set(sensor_names)))
        return [SensorReadings(name, results[name]) for name in sensor_names]

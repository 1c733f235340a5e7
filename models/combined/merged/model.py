"""Movement sensor `merged`: each measurement comes from the first of several movement sensors that answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, TypeVar

from engine import (
    Accuracy,
    Attributes,
    Extra,
    GeoPosition,
    MovementProperties,
    MovementSensor,
    Started,
    Unsupported,
    model,
)
from models.combined.merged.attributes import MEASUREMENTS, MergedMovementSensorConfig
from models.common.sources import ready_sources
from schema import ErrorKind, MachineError, Orientation, Vector3

T = TypeVar("T")


@model("rdk:builtin:merged")
class MergedMovementSensor(MovementSensor):
    """Asks the sensors of a measurement in their order. It restarts when one of them appears or disappears."""

    Config: ClassVar[type[Attributes]] = MergedMovementSensorConfig

    async def run(self, *, task_status: Started) -> None:
        """Find out which sensors provide what; PRECONDITION for one that cannot, or if none is ready."""
        config: MergedMovementSensorConfig = self.attributes
        present = ready_sources(self, MovementSensor, config.sensors())
        properties = {name: await sensor.get_properties() for name, sensor in present.items()}
        self._sources: dict[str, list[MovementSensor]] = {}
        for measurement in MEASUREMENTS:
            for name in getattr(config, measurement):
                if name in present and not getattr(properties[name], f"{measurement}_supported"):
                    raise MachineError(
                        f"{measurement}: {name} does not measure it",
                        kind=ErrorKind.PRECONDITION,
                        remedy="name only sensors that do",
                    )
            if names := getattr(config, measurement):
                self._sources[measurement] = [present[name] for name in names if name in present]
        await super().run(task_status=task_status)

    async def _first(self, measurement: str, ask: Callable[[MovementSensor], Awaitable[T]]) -> T:
        """Return the answer of the first sensor that gives one; otherwise the error of the first."""
        if measurement not in self._sources:
            raise Unsupported(f"{self.name} has no sensor for {measurement}")
        failed: MachineError | None = None
        for sensor in self._sources[measurement]:
            try:
                return await ask(sensor)
            except MachineError as error:
                failed = failed or error
        raise failed or MachineError(
            f"{self.name}: no sensor for {measurement} is ready: {', '.join(getattr(self.attributes, measurement))}",
            kind=ErrorKind.UNAVAILABLE,
        )

    async def get_position(self, *, extra: Extra = None) -> GeoPosition:
        """Return the position of the first sensor that has one."""
        return await self._first("position", lambda sensor: sensor.get_position(extra=extra))

    async def get_linear_velocity(self, *, extra: Extra = None) -> Vector3:
        """Return the velocity (m/s) of the first sensor that has one, along the axes of that sensor."""
        return await self._first("linear_velocity", lambda sensor: sensor.get_linear_velocity(extra=extra))

    async def get_angular_velocity(self, *, extra: Extra = None) -> Vector3:
        """Return the angular velocity (degrees/s) of the first sensor that has one, about the axes of that sensor."""
        return await self._first("angular_velocity", lambda sensor: sensor.get_angular_velocity(extra=extra))

    async def get_linear_acceleration(self, *, extra: Extra = None) -> Vector3:
        """Return the acceleration (m/s²) of the first sensor that has one, along the axes of that sensor."""
        return await self._first("linear_acceleration", lambda sensor: sensor.get_linear_acceleration(extra=extra))

    async def get_compass_heading(self, *, extra: Extra = None) -> float:
        """Return the heading (degrees clockwise from north) of the first sensor that has one."""
        return await self._first("compass_heading", lambda sensor: sensor.get_compass_heading(extra=extra))

    async def get_orientation(self, *, extra: Extra = None) -> Orientation:
        """Return the orientation of the first sensor that has one."""
        return await self._first("orientation", lambda sensor: sensor.get_orientation(extra=extra))

    async def get_accuracy(self, *, extra: Extra = None) -> Accuracy:
        """Return the precision of the position and of the compass; other values are named after their sensors."""
        position, compass, values = Accuracy(), Accuracy(), dict[str, float]()
        for measurement in self._sources:
            source, accuracy = await self._first(measurement, lambda sensor: _accuracy(sensor, extra))
            values |= {f"{source}_{name}": value for name, value in accuracy.accuracy.items()}
            position = accuracy if measurement == "position" else position
            compass = accuracy if measurement == "compass_heading" else compass
        return Accuracy(
            values,
            position.position_hdop,
            position.position_vdop,
            position.position_nmea_gga_fix,
            compass.compass_degrees_error,
        )

    async def get_properties(self, *, extra: Extra = None) -> MovementProperties:
        """Report support of the measurements that have sensors."""
        supported: Mapping[str, bool] = {f"{measurement}_supported": True for measurement in self._sources}
        return MovementProperties(**supported)


async def _accuracy(sensor: MovementSensor, extra: Extra) -> tuple[str, Accuracy]:
    return sensor.name.name, await sensor.get_accuracy(extra=extra)

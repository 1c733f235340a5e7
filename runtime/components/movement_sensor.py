"""Movement sensor: where something is, how it is turned and how it moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from runtime.components.sensor import Sensor
from runtime.resource import Extra
from schema.geometry import GeoPoint, Orientation, Vector3
from schema.names import API


@dataclass(frozen=True, slots=True)
class GeoPosition:
    """A place on the globe and its height above sea level (m)."""

    coordinate: GeoPoint
    altitude_m: float = 0.0


@dataclass(frozen=True, slots=True)
class MovementProperties:
    """Which of the measurements this sensor has."""

    linear_velocity_supported: bool = False
    angular_velocity_supported: bool = False
    orientation_supported: bool = False
    position_supported: bool = False
    compass_heading_supported: bool = False
    linear_acceleration_supported: bool = False


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far the measurements can be trusted.

    `accuracy` by name in the driver's units; horizontal and vertical dilution of precision; the quality of the fix as
    in NMEA GGA (0 none, 1 GPS, 2 differential, 4 RTK, 5 float RTK); error of the compass (degrees).
    """

    accuracy: Mapping[str, float] = field(default_factory=dict)
    position_hdop: float | None = None
    position_vdop: float | None = None
    position_nmea_gga_fix: int | None = None
    compass_degrees_error: float | None = None


class MovementSensor(Sensor):
    """A GPS receiver, an inertial unit, a compass. Raise Unsupported for what this one does not measure."""

    API: ClassVar[API] = API("rdk", "component", "movement_sensor")

    async def get_position(self, *, extra: Extra = None) -> GeoPosition:
        """Latitude and longitude (degrees) and altitude (m)."""
        raise NotImplementedError

    async def get_linear_velocity(self, *, extra: Extra = None) -> Vector3:
        """Velocity along x, y and z (m/s)."""
        raise NotImplementedError

    async def get_angular_velocity(self, *, extra: Extra = None) -> Vector3:
        """Rotation about x, y and z (degrees/s)."""
        raise NotImplementedError

    async def get_linear_acceleration(self, *, extra: Extra = None) -> Vector3:
        """Acceleration along x, y and z (m/s²)."""
        raise NotImplementedError

    async def get_compass_heading(self, *, extra: Extra = None) -> float:
        """Degrees from north, clockwise: 0 to 360, 360 excluded."""
        raise NotImplementedError

    async def get_orientation(self, *, extra: Extra = None) -> Orientation:
        """How it is turned."""
        raise NotImplementedError

    async def get_accuracy(self, *, extra: Extra = None) -> Accuracy:
        """How far the measurements can be trusted."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> MovementProperties:
        """Which measurements this sensor has."""
        raise NotImplementedError

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Every measurement that `get_properties` names, one after the other, by the names clients know."""
        has = await self.get_properties(extra=extra)
        readings: dict[str, Any] = {}
        if has.position_supported:
            position = await self.get_position(extra=extra)
            readings["position"] = position.coordinate
            readings["altitude"] = position.altitude_m
        if has.linear_velocity_supported:
            readings["linear_velocity"] = await self.get_linear_velocity(extra=extra)
        if has.angular_velocity_supported:
            readings["angular_velocity"] = await self.get_angular_velocity(extra=extra)
        if has.linear_acceleration_supported:
            readings["linear_acceleration"] = await self.get_linear_acceleration(extra=extra)
        if has.compass_heading_supported:
            readings["compass"] = await self.get_compass_heading(extra=extra)
        if has.orientation_supported:
            readings["orientation"] = await self.get_orientation(extra=extra)
        return readings

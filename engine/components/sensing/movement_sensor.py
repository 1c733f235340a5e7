"""Movement sensor: measures position, orientation and motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from engine.components.sensing.sensor import Sensor
from engine.resource import Extra
from schema import API, GeoPoint, Orientation, Vector3


@dataclass(frozen=True, slots=True)
class GeoPosition:
    """A geographic position and its altitude above sea level (m)."""

    coordinate: GeoPoint
    altitude_m: float = 0.0


@dataclass(frozen=True, slots=True)
class MovementProperties:
    """Measurements that a sensor supports."""

    linear_velocity_supported: bool = False
    angular_velocity_supported: bool = False
    orientation_supported: bool = False
    position_supported: bool = False
    compass_heading_supported: bool = False
    linear_acceleration_supported: bool = False


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Accuracy of the measurements.

    `accuracy` maps names to values in units that the driver defines. The other fields are the horizontal and vertical
    dilution of precision, the quality of the fix as in NMEA GGA (0 none, 1 GPS, 2 differential, 4 RTK, 5 float RTK),
    and the error of the compass (degrees).
    """

    accuracy: Mapping[str, float] = field(default_factory=dict)
    position_hdop: float | None = None
    position_vdop: float | None = None
    position_nmea_gga_fix: int | None = None
    compass_degrees_error: float | None = None


class MovementSensor(Sensor):
    """A GPS receiver, inertial unit or compass. Drivers raise Unsupported for what they do not measure."""

    API: ClassVar[API] = API("rdk", "component", "movement_sensor")

    async def get_position(self, *, extra: Extra = None) -> GeoPosition:
        """Return latitude and longitude (degrees) and altitude (m)."""
        raise NotImplementedError

    async def get_linear_velocity(self, *, extra: Extra = None) -> Vector3:
        """Return the velocity along x, y and z (m/s)."""
        raise NotImplementedError

    async def get_angular_velocity(self, *, extra: Extra = None) -> Vector3:
        """Return the angular velocity about x, y and z (degrees/s)."""
        raise NotImplementedError

    async def get_linear_acceleration(self, *, extra: Extra = None) -> Vector3:
        """Return the acceleration along x, y and z (m/s²)."""
        raise NotImplementedError

    async def get_compass_heading(self, *, extra: Extra = None) -> float:
        """Return the heading: degrees clockwise from north, from 0 up to but not including 360."""
        raise NotImplementedError

    async def get_orientation(self, *, extra: Extra = None) -> Orientation:
        """Return the orientation."""
        raise NotImplementedError

    async def get_accuracy(self, *, extra: Extra = None) -> Accuracy:
        """Return the accuracy of the measurements."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> MovementProperties:
        """Return which measurements this sensor supports."""
        raise NotImplementedError

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Return all measurements that `get_properties` lists, by their published names, measured one by one."""
        supported = await self.get_properties(extra=extra)
        readings: dict[str, Any] = {}
        if supported.position_supported:
            position = await self.get_position(extra=extra)
            readings["position"] = position.coordinate
            readings["altitude"] = position.altitude_m
        if supported.linear_velocity_supported:
            readings["linear_velocity"] = await self.get_linear_velocity(extra=extra)
        if supported.angular_velocity_supported:
            readings["angular_velocity"] = await self.get_angular_velocity(extra=extra)
        if supported.linear_acceleration_supported:
            readings["linear_acceleration"] = await self.get_linear_acceleration(extra=extra)
        if supported.compass_heading_supported:
            readings["compass"] = await self.get_compass_heading(extra=extra)
        if supported.orientation_supported:
            readings["orientation"] = await self.get_orientation(extra=extra)
        return readings

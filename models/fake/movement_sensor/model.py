"""A simulated movement sensor with constant measurements, or those of the simulated base that carries it."""

from __future__ import annotations

import math
from typing import ClassVar, Final

from engine import Accuracy, Attributes, Extra, GeoPosition, MovementProperties, MovementSensor, model
from hal.sim import SimBase
from models.fake.common.simulated import SimulatedResource
from models.fake.movement_sensor.attributes import FakeMovementSensorConfig
from schema import GeoPoint, Orientation, Vector3

# The values that clients expect of a fake movement sensor.
HOME: Final = GeoPosition(GeoPoint(40.7, -73.98), 50.5)
LINEAR_VELOCITY: Final = Vector3(0.0, 5.4, 0.0)  # m/s
ANGULAR_VELOCITY: Final = Vector3(0.0, 0.0, 1.0)  # degrees/s
LINEAR_ACCELERATION: Final = Vector3(2.2, 4.5, 2.0)  # m/s²
COMPASS: Final = 25.0  # degrees
METRES_PER_DEGREE: Final = 111_320.0  # of latitude


@model("rdk:builtin:fake")
class FakeMovementSensor(SimulatedResource, MovementSensor):
    """Supports all measurements. A base starts at 40.7 N, 73.98 W, facing north."""

    Config: ClassVar[type[Attributes]] = FakeMovementSensorConfig

    async def _base(self) -> SimBase | None:
        await self.access()
        return self.world.find(SimBase, self.attributes.base.rpartition("/")[2]) if self.attributes.base else None

    async def get_position(self, *, extra: Extra = None) -> GeoPosition:
        """Return the home position, moved like the base."""
        base = await self._base()
        if base is None:
            return HOME
        place = base.place(self.world.now())
        home = HOME.coordinate
        per_degree = METRES_PER_DEGREE * math.cos(math.radians(home.latitude))
        return GeoPosition(
            GeoPoint(home.latitude + place.y / 1000 / METRES_PER_DEGREE, home.longitude + place.x / 1000 / per_degree),
            HOME.altitude_m,
        )

    async def get_linear_velocity(self, *, extra: Extra = None) -> Vector3:
        """Return the velocity along the axes of the base (m/s); y is forward."""
        base = await self._base()
        return LINEAR_VELOCITY if base is None else Vector3(0.0, base.speeds(self.world.now())[0] / 1000, 0.0)

    async def get_angular_velocity(self, *, extra: Extra = None) -> Vector3:
        """Return the rotation (degrees/s); turning left is positive about z."""
        base = await self._base()
        return ANGULAR_VELOCITY if base is None else Vector3(0.0, 0.0, base.speeds(self.world.now())[1])

    async def get_linear_acceleration(self, *, extra: Extra = None) -> Vector3:
        """Return the acceleration (m/s²); on a base, gravity only."""
        return LINEAR_ACCELERATION if await self._base() is None else Vector3(0.0, 0.0, 9.81)

    async def get_compass_heading(self, *, extra: Extra = None) -> float:
        """Return the heading in degrees clockwise from north."""
        base = await self._base()
        return COMPASS if base is None else -base.place(self.world.now()).heading % 360.0 % 360.0

    async def get_orientation(self, *, extra: Extra = None) -> Orientation:
        """Return an upright orientation; theta is the heading to the left."""
        base = await self._base()
        return Orientation(0.0, 0.0, 1.0, 0.0 if base is None else base.place(self.world.now()).heading)

    async def get_accuracy(self, *, extra: Extra = None) -> Accuracy:
        """Return the constant values of a good fix."""
        await self.access()
        return Accuracy({}, position_hdop=1.0, position_vdop=1.0, position_nmea_gga_fix=4, compass_degrees_error=0.0)

    async def get_properties(self, *, extra: Extra = None) -> MovementProperties:
        """Report support of all measurements."""
        await self.access()
        return MovementProperties(
            linear_velocity_supported=True,
            angular_velocity_supported=True,
            orientation_supported=True,
            position_supported=True,
            compass_heading_supported=True,
            linear_acceleration_supported=True,
        )

"""Movement sensor `wheeled-odometry`: the position of a wheeled base, computed from its motors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import trio

from engine import (
    Accuracy,
    Attributes,
    Base,
    Extra,
    GeoPosition,
    Motor,
    MovementProperties,
    MovementSensor,
    Started,
    Unsupported,
    model,
)
from hal.control import Chassis, PlanarPose, Sides, after_arc, on_globe
from models.wheels.odometry.attributes import WheeledOdometryConfig
from models.wheels.wheeled.model import WheeledBase
from schema import ErrorKind, GeoPoint, MachineError, Orientation, Vector3
from support import gather


@model("rdk:builtin:wheeled-odometry")
class WheeledOdometry(MovementSensor):
    """Computes position, heading and velocities from wheel travel. Errors accumulate, and slipping is not detected.

    Between two readings of the motors, the path is assumed to be an arc. Do not reset the zero position of the motors
    while it runs: that would count as travel. The command `{"reset": true}` makes the current position the origin.
    """

    Config: ClassVar[type[Attributes]] = WheeledOdometryConfig

    async def run(self, *, task_status: Started) -> None:
        """Read the motors periodically until cancelled. PRECONDITION if a motor does not report its position."""
        config: WheeledOdometryConfig = self.attributes
        base = self.dependency(Base, config.base)
        self._left, self._right = (
            [self.dependency(Motor, name) for name in names] for names in (config.left_motors, config.right_motors)
        )
        for motor in (*self._left, *self._right):
            if not (await motor.get_properties()).position_reporting:
                raise MachineError(
                    f"{motor.name} does not report its position",
                    kind=ErrorKind.PRECONDITION,
                    remedy="configure an encoder for it",
                )
        self._chassis = await _chassis(base)
        self._pose, self._velocity = PlanarPose(), (0.0, 0.0)
        self._failure: MachineError | None = None
        previous = await self._wheels()
        period = config.time_interval_msec / 1000
        async with self.hardware.ticks(period) as ticks:
            task_status.started()
            elapsed_periods = 0
            async for periods in ticks:
                elapsed_periods += periods
                try:
                    current = await self._wheels()
                except MachineError as error:
                    self._record_failure(error)
                    continue
                forward, angle = self._chassis.motion(
                    Sides(current.left - previous.left, current.right - previous.right)
                )
                self._pose = after_arc(self._pose, forward, angle)
                self._velocity = forward / (elapsed_periods * period), angle / (elapsed_periods * period)
                self._failure = None
                previous, elapsed_periods = current, 0

    def _record_failure(self, error: MachineError) -> None:
        """Store an error, which calls raise until the motors answer again. Travel in the meantime is not lost."""
        if self._failure is None:
            self.log.warning("a motor did not report its position", error=str(error))
        self._failure = error

    async def _wheels(self) -> Sides:
        """Return the mean revolutions of each side."""
        positions: dict[Motor, float] = {}

        async def read(motor: Motor) -> None:
            positions[motor] = await motor.get_position()

        await gather(*(lambda motor=motor: read(motor) for motor in (*self._left, *self._right)))
        return Sides(
            _mean([positions[motor] for motor in self._left]), _mean([positions[motor] for motor in self._right])
        )

    async def _current_pose(self) -> PlanarPose:
        await trio.lowlevel.checkpoint()
        if self._failure is not None:
            raise self._failure
        return self._pose

    @property
    def _origin(self) -> GeoPoint:
        return GeoPoint(self.attributes.origin_latitude, self.attributes.origin_longitude)

    async def get_position(self, *, extra: Extra = None) -> GeoPosition:
        """Return latitude and longitude; with `extra` `{"return_relative_pos_m": true}` meters ahead and right."""
        pose = await self._current_pose()
        if (extra or {}).get("return_relative_pos_m"):
            return GeoPosition(GeoPoint(pose.y / 1000, pose.x / 1000))
        return GeoPosition(on_globe(self._origin, self.attributes.origin_heading_deg, pose))

    async def get_linear_velocity(self, *, extra: Extra = None) -> Vector3:
        """Return the velocity along the axes of the base (m/s) in the last interval; y is forward."""
        await self._current_pose()
        return Vector3(0.0, self._velocity[0] / 1000, 0.0)

    async def get_angular_velocity(self, *, extra: Extra = None) -> Vector3:
        """Return the rotation (degrees/s) in the last interval; turning left is positive about z."""
        await self._current_pose()
        return Vector3(0.0, 0.0, self._velocity[1])

    async def get_compass_heading(self, *, extra: Extra = None) -> float:
        """Return degrees clockwise from north, relative to `origin_heading_deg`."""
        heading = (self.attributes.origin_heading_deg - (await self._current_pose()).heading) % 360.0
        return float(heading) % 360.0

    async def get_orientation(self, *, extra: Extra = None) -> Orientation:
        """Return an upright orientation; theta is the turn to the left since the origin, -180 to 180 degrees."""
        heading = (await self._current_pose()).heading
        return Orientation(0.0, 0.0, 1.0, (heading + 180.0) % 360.0 - 180.0)

    async def get_linear_acceleration(self, *, extra: Extra = None) -> Vector3:
        """Raise Unsupported."""
        raise Unsupported(f"{self.name} does not measure acceleration")

    async def get_accuracy(self, *, extra: Extra = None) -> Accuracy:
        """Return no values: the accuracy depends on the floor."""
        await trio.lowlevel.checkpoint()
        return Accuracy()

    async def get_properties(self, *, extra: Extra = None) -> MovementProperties:
        """Report support of everything except acceleration."""
        await trio.lowlevel.checkpoint()
        return MovementProperties(
            linear_velocity_supported=True,
            angular_velocity_supported=True,
            orientation_supported=True,
            position_supported=True,
            compass_heading_supported=True,
        )

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Execute `{"reset": true}`: make the current position the origin."""
        await trio.lowlevel.checkpoint()
        if dict(command) != {"reset": True}:
            raise MachineError(
                f"{self.name} does not support the command {dict(command)}",
                kind=ErrorKind.INVALID,
                remedy='use {"reset": true}',
            )
        self._pose = PlanarPose()
        return {}

    async def get_status(self) -> Mapping[str, Any]:
        """Return the position in mm to the right and ahead, and the heading in degrees to the left."""
        pose = self._pose
        return {"x_mm": pose.x, "y_mm": pose.y, "heading_deg": pose.heading}


async def _chassis(base: Base) -> Chassis:
    """Return the dimensions of a base; the slip factor is available only from a `WheeledBase`."""
    if isinstance(base, WheeledBase):
        return base.chassis
    properties = await base.get_properties()
    if not properties.width_meters or not properties.wheel_circumference_meters:
        raise MachineError(
            f"{base.name} does not report its width and its wheel circumference",
            kind=ErrorKind.PRECONDITION,
            remedy="configure them",
        )
    return Chassis(properties.width_meters * 1000, properties.wheel_circumference_meters * 1000)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

"""Base `wheeled`: two rows of wheels, each wheel with a motor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

import trio

from engine import Attributes, Base, BaseProperties, Extra, Motor, Started, model
from hal.control import Chassis, Sides, mix
from models.common.drive import MIN_RPM
from models.common.motion import ExclusiveMotion, check_finite, check_move, run_all, run_shielded
from models.wheels.wheeled.attributes import WheeledConfig
from schema import ErrorKind, MachineError, Vector3
from support import gather

NO_POWER: Final = 1e-9  # lower power is a rounding error


@model("rdk:builtin:wheeled")
class WheeledBase(Base):
    """A new command cancels the current one, which fails with CANCELLED; the wheels stop in between.

    If a wheel fails, the others are stopped. A speed that a motor cannot reach is limited by the motor, which changes
    the path.
    """

    Config: ClassVar[type[Attributes]] = WheeledConfig
    left: Sequence[Motor]
    right: Sequence[Motor]

    async def run(self, *, task_status: Started) -> None:
        """Use the motors until cancelled, then stop them."""
        config: WheeledConfig = self.attributes
        self.use_motors(
            [self.dependency(Motor, name) for name in config.left],
            [self.dependency(Motor, name) for name in config.right],
        )
        try:
            task_status.started()
            await trio.sleep_forever()
        finally:
            await run_shielded(self.halt)

    def use_motors(self, left: Sequence[Motor], right: Sequence[Motor]) -> None:
        """Set the motors of the base."""
        self.left, self.right = left, right
        self._motion = ExclusiveMotion()

    @property
    def chassis(self) -> Chassis:
        """The dimensions of the base."""
        config = self.attributes
        return Chassis(config.width_mm, config.wheel_circumference_mm, config.spin_slip_factor)

    async def begin(self) -> None:
        """Execute a checkpoint before each command."""
        await trio.lowlevel.checkpoint()

    async def halt(self) -> None:
        """Stop every wheel; an error of one does not affect the others."""
        await run_all(*(motor.stop for motor in (*self.left, *self.right)))

    async def move_straight(self, distance_mm: int, mm_per_sec: float, *, extra: Extra = None) -> None:
        """Drive exactly this distance."""
        check_move(self.name, distance_mm, mm_per_sec)
        await self.begin()
        revolutions = self.chassis.straight(math.copysign(distance_mm, distance_mm * mm_per_sec))
        await self._go_for(revolutions, self.chassis.straight(abs(mm_per_sec)))

    async def spin(self, angle_deg: float, degs_per_sec: float, *, extra: Extra = None) -> None:
        """Turn on the spot by exactly this angle."""
        check_move(self.name, angle_deg, degs_per_sec)
        await self.begin()
        revolutions = self.chassis.turn(math.copysign(angle_deg, angle_deg * degs_per_sec))
        await self._go_for(revolutions, self.chassis.turn(abs(degs_per_sec)))

    async def _go_for(self, revolutions: Sides, speed: Sides) -> None:
        """Turn the wheels by `revolutions` revolutions, at the magnitude of `speed` revolutions per second."""
        async with self._motion.begin(self.halt):
            await gather(
                *(partial(motor.go_for, abs(speed.left) * 60, revolutions.left) for motor in self.left),
                *(partial(motor.go_for, abs(speed.right) * 60, revolutions.right) for motor in self.right),
            )

    async def set_power(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        """Set the power: left wheels `linear.y - angular.z`, right wheels the sum, both scaled down to at most 1."""
        check_finite("the power", linear.y, angular.z)
        await self.begin()
        await self._set_each("set_power", mix(linear.y, angular.z), NO_POWER)

    async def set_velocity(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        """Set the wheel speeds for a velocity. Wheels slower than 0.1 rpm are stopped."""
        check_finite("the velocity", linear.y, angular.z)
        await self.begin()
        wheels = self.chassis.arc(linear.y, angular.z)
        await self._set_each("set_rpm", Sides(wheels.left * 60, wheels.right * 60), MIN_RPM)

    async def _set_each(self, method: str, values: Sides, minimum: float) -> None:
        async with self._motion.begin(self.halt):
            await gather(
                *(
                    motor.stop if abs(value) < minimum else partial(getattr(motor, method), value)
                    for motors, value in zip((self.left, self.right), values, strict=True)
                    for motor in motors
                )
            )

    async def get_properties(self, *, extra: Extra = None) -> BaseProperties:
        """Return the dimensions; the turning radius is 0."""
        await self.begin()
        config = self.attributes
        return BaseProperties(
            width_meters=config.width_mm / 1000,
            turning_radius_meters=0.0,
            wheel_circumference_meters=config.wheel_circumference_mm / 1000,
        )

    async def stop(self, *, extra: Extra = None) -> None:
        """Stop every wheel. Returns when they are stopped, or when a newer command has taken over."""
        await self.begin()
        try:
            async with self._motion.begin(self.halt):
                await self.halt()
        except MachineError as error:
            if error.kind is not ErrorKind.CANCELLED:
                raise

    async def is_moving(self) -> bool:
        """Return whether a wheel is moving."""
        await self.begin()
        for motor in (*self.left, *self.right):
            if await motor.is_moving():
                return True
        return False

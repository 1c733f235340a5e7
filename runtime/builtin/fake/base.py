"""A simulated base on two rows of wheels, its own or those of configured motors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any, ClassVar, Final

import msgspec
import trio

from hal.sim.base import SimBase
from hal.sim.motor import SimMotor
from runtime.builtin.fake.bench import OnBench
from runtime.builtin.fake.motor import FakeMotor, FakeMotorConfig
from runtime.builtin.motion import HALT_TIME, OneMotion, finite
from runtime.builtin.together import together
from runtime.components.base import Base, BaseProperties
from runtime.components.motor import Motor
from runtime.resource import Attributes, Context, Extra, Started
from schema.errors import ErrorKind, MachineError
from schema.geometry import Vector3
from schema.names import ResourceName

NOTHING: Final = 1e-9  # of power or rpm: rounding, not a wish
OWN_WHEEL_RPM: Final = 120.0  # top speed of wheels without a configured motor


class FakeBaseConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated base. Without motors it has wheels of its own."""

    left: tuple[str, ...] = ()  # names of the motors on the left
    right: tuple[str, ...] = ()  # names of the motors on the right
    width_mm: Annotated[float, msgspec.Meta(gt=0)] = 600.0  # between the middles of left and right wheels
    wheel_circumference_mm: Annotated[float, msgspec.Meta(gt=0)] = 600.0  # way of one revolution
    spin_slip_factor: Annotated[float, msgspec.Meta(gt=0)] = 1.0  # wheels turn this much more when turning on the spot

    def __post_init__(self) -> None:
        if bool(self.left) != bool(self.right):
            raise ValueError("left and right must be given together")

    def requires(self) -> list[str]:
        """Its motors."""
        return [*self.left, *self.right]


class FakeBase(OnBench, Base):
    """Where it has come to is seen by `get_status`, by cameras and by movement sensors that name it."""

    Config: ClassVar[type[Attributes]] = FakeBaseConfig

    async def run(self, *, task_status: Started) -> None:
        """On the bench while it runs, with its wheels."""
        config: FakeBaseConfig = self.attributes
        self._motion = OneMotion()
        self._left = [self.dependency(Motor, name) for name in config.left]
        self._right = [self.dependency(Motor, name) for name in config.right]
        async with trio.open_nursery() as nursery:
            if not config.left:
                self._left = [await self._own_wheel(nursery, "left")]
                self._right = [await self._own_wheel(nursery, "right")]
            try:
                with ExitStack() as bench:
                    self._device = self._stand()
                    if self._device is not None:
                        bench.enter_context(self.world.holding(self._device))
                    task_status.started()
                    await trio.sleep_forever()
            finally:
                with trio.move_on_after(HALT_TIME, shield=True):
                    await self._halt()

    def _stand(self) -> SimBase | None:
        """On its wheels, if all of them are simulated; motors that are not move nothing on the bench."""
        config: FakeBaseConfig = self.attributes
        left, right = (
            [self.world.find(SimMotor, motor.name.short) for motor in motors] for motors in (self._left, self._right)
        )
        simulated = [[wheel for wheel in side if wheel is not None] for side in (left, right)]
        if len(simulated[0]) != len(left) or len(simulated[1]) != len(right):
            return None
        return SimBase(
            self.name.short,
            *simulated,
            circumference_mm=config.wheel_circumference_mm,
            width_mm=config.width_mm,
        )

    _device: SimBase | None = None

    async def _own_wheel(self, nursery: trio.Nursery, side: str) -> Motor:
        name = ResourceName(Motor.API, f"{self.name.short}-{side}")
        wheel = FakeMotor(
            Context(name, FakeMotorConfig(max_rpm=OWN_WHEEL_RPM), {}, self.world, self.hardware, self.log)
        )
        await nursery.start(wheel.run)
        return wheel

    async def _halt(self) -> None:
        await together(*(motor.stop for motor in (*self._left, *self._right)))

    async def _go_for(self, left: float, right: float, rpm: float) -> None:
        """Turn the wheels by `left` and `right` revolutions."""
        async with self._motion.begin(self._halt):
            await together(
                *(partial(motor.go_for, rpm, left) for motor in self._left),
                *(partial(motor.go_for, rpm, right) for motor in self._right),
            )

    async def move_straight(self, distance_mm: int, mm_per_sec: float, *, extra: Extra = None) -> None:
        """Drive exactly that way."""
        self._check(distance_mm, mm_per_sec)
        await self.access()
        circumference = self.attributes.wheel_circumference_mm
        revolutions = math.copysign(distance_mm / circumference, distance_mm * mm_per_sec)
        await self._go_for(revolutions, revolutions, abs(mm_per_sec) / circumference * 60)

    async def spin(self, angle_deg: float, degs_per_sec: float, *, extra: Extra = None) -> None:
        """Turn on the spot by exactly that angle."""
        self._check(angle_deg, degs_per_sec)
        await self.access()
        config: FakeBaseConfig = self.attributes
        way = config.width_mm / 2 / config.wheel_circumference_mm * config.spin_slip_factor  # revolutions per radian
        revolutions = math.copysign(math.radians(angle_deg) * way, angle_deg * degs_per_sec)
        await self._go_for(-revolutions, revolutions, math.radians(abs(degs_per_sec)) * way * 60)

    def _check(self, way: float, speed: float) -> None:
        finite("the way", way)
        finite("the speed", speed)
        if not way or not speed:
            raise MachineError(
                f"{self.name}: a way of {way:g} at a speed of {speed:g}",
                kind=ErrorKind.INVALID,
                remedy="call stop instead",
            )

    async def set_power(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        """Power to the left wheels is `linear.y - angular.z`, to the right ones the sum, both scaled down to 1."""
        finite("the power", linear.y, angular.z)
        await self.access()
        left, right = linear.y - angular.z, linear.y + angular.z
        most = max(1.0, abs(left), abs(right))
        await self._each("set_power", left / most, right / most)

    async def set_velocity(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        """Wheel speeds for that velocity; a motor limits what it cannot reach."""
        finite("the velocity", linear.y, angular.z)
        await self.access()
        config: FakeBaseConfig = self.attributes
        turn = math.radians(angular.z) * config.width_mm / 2 * config.spin_slip_factor
        left, right = (way / config.wheel_circumference_mm * 60 for way in (linear.y - turn, linear.y + turn))
        await self._each("set_rpm", left, right)

    async def _each(self, method: str, left: float, right: float) -> None:
        await self._motion.overtake()
        await together(
            *(
                motor.stop if abs(value) < NOTHING else partial(getattr(motor, method), value)
                for motors, value in ((self._left, left), (self._right, right))
                for motor in motors
            )
        )

    async def get_properties(self, *, extra: Extra = None) -> BaseProperties:
        """It turns on the spot."""
        await self.access()
        config: FakeBaseConfig = self.attributes
        return BaseProperties(
            width_meters=config.width_mm / 1000,
            turning_radius_meters=0.0,
            wheel_circumference_meters=config.wheel_circumference_mm / 1000,
        )

    async def stop(self, *, extra: Extra = None) -> None:
        """Stop every wheel."""
        await self.access()
        await self._motion.overtake()
        await self._halt()

    async def is_moving(self) -> bool:
        """True while a wheel turns."""
        await self.access()
        for motor in (*self._left, *self._right):
            if await motor.is_moving():
                return True
        return False

    async def get_status(self) -> Mapping[str, Any]:
        """Where it has come to: mm, and degrees to the left."""
        now = await self.access()
        if self._device is None:
            return {}
        place = self._device.place(now)
        return {"x_mm": place.x, "y_mm": place.y, "heading_deg": place.heading}

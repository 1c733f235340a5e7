"""Base `sensor-controlled`: another base, which is corrected by what movement sensors measure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from math import inf
from typing import ClassVar, Final

import trio

from engine import Attributes, Base, BaseProperties, Extra, MovementSensor, Started, model
from hal.control import Gains
from models.common.control_loop import ControlLoop, Goal
from models.common.motion import check_finite, check_move, run_shielded
from models.wheels.sensor_controlled.attributes import SensorControlledBaseConfig
from models.wheels.sensor_controlled.steering import Correction, Course, Measured
from schema import ErrorKind, MachineError, Vector3
from support import gather

DEFAULT: Final = Gains(0.3, 1.0)
"""Gains of both velocities: an error of a tenth is gone after about 3 s, without overshoot for motors that follow in
0.3 s."""
FORWARD_BOUND: Final = 200.0  # mm/s by which the speed is corrected at most, or by the speed itself
TURN_BOUND: Final = 45.0  # degrees/s, likewise


class _Drive(Goal):
    """A motion: its course, and when it is too late."""

    def __init__(self, course: Course, period: float, deadline: float) -> None:
        super().__init__(0.0, period)
        self.course, self.deadline = course, deadline


@model("rdk:builtin:sensor-controlled")
class SensorControlledBase(Base):
    """Drives straight on, turns and keeps velocities as measured, also if wheels slip or motors differ.

    A new command replaces the current one, which fails with CANCELLED. If a sensor fails, the base stops.
    """

    Config: ClassVar[type[Attributes]] = SensorControlledBaseConfig

    async def run(self, *, task_status: Started) -> None:
        """Drive until cancelled. PRECONDITION if no sensor measures both velocities."""
        config: SensorControlledBaseConfig = self.attributes
        self._base = self.dependency(Base, config.base)
        self._period = 1 / config.control_frequency_hz
        await self._choose([self.dependency(MovementSensor, name) for name in config.movement_sensor])
        self._forward, self._turn = (
            Correction(_gains(config, kind), bound)
            for kind, bound in (("linear_velocity", FORWARD_BOUND), ("angular_velocity", TURN_BOUND))
        )
        self._loop = ControlLoop(
            ticks=self.hardware.ticks, begin=self._begin, step=self._step, rest=self._base.stop, log=self.log
        )
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._loop.run)
                task_status.started()
        finally:
            await run_shielded(self._base.stop)

    async def _choose(self, sensors: list[MovementSensor]) -> None:
        """Choose the sensors: of velocities, and of the heading, which is otherwise the sum of the turns."""
        self._velocities: MovementSensor | None = None
        self._heading: Callable[[], Awaitable[float]] | None = None
        for sensor in sensors:
            has = await sensor.get_properties()
            if self._velocities is None and has.linear_velocity_supported and has.angular_velocity_supported:
                self._velocities = sensor
            if self._heading is None and has.orientation_supported:
                self._heading = partial(_by_orientation, sensor)
            elif self._heading is None and has.compass_heading_supported:
                self._heading = partial(_by_compass, sensor)
        if self._velocities is None:
            raise MachineError(
                f"no sensor in movement_sensor measures both linear and angular velocity: "
                f"{', '.join(sensor.name.name for sensor in sensors)}",
                kind=ErrorKind.PRECONDITION,
                remedy="name one that does, such as wheeled-odometry, or merge two with the model merged",
            )

    # ---- the loop

    async def _begin(self) -> None:
        self._forward.reset()
        self._turn.reset()

    async def _measure(self) -> Measured:
        values: dict[str, float] = {}
        velocities, heading = self._velocities, self._heading
        assert velocities is not None

        async def forward() -> None:
            values["forward"] = (await velocities.get_linear_velocity()).y * 1000

        async def turn() -> None:
            values["turn"] = (await velocities.get_angular_velocity()).z

        async def course() -> None:
            if heading is not None:
                values["heading"] = await heading()

        await gather(forward, turn, course)
        check_finite("a measurement of a movement sensor", *values.values())
        return Measured(values["forward"], values["turn"], values.get("heading"))

    async def _step(self, goal: Goal, periods: int) -> bool:
        assert isinstance(goal, _Drive)
        measured, seconds = await self._measure(), periods * goal.period
        goal.course.advance(measured, seconds)
        if goal.course.reached:
            return True
        if trio.current_time() > goal.deadline:
            raise MachineError(
                f"{self.name} has {goal.course.left} to go after three times the time that it needs",
                kind=ErrorKind.TIMEOUT,
                remedy="check whether the base moves, and whether the sensor measures it along the axes of the base",
            )
        forward, turn = goal.course.velocity
        await self._base.set_velocity(
            Vector3(0.0, self._forward.corrected(forward, measured.forward, seconds), 0.0),
            Vector3(0.0, 0.0, self._turn.corrected(turn, measured.turn, seconds)),
        )
        return False

    # ---- commands

    async def move_straight(self, distance_mm: int, mm_per_sec: float, *, extra: Extra = None) -> None:
        """Drive this distance in the direction of now, by the measured velocity; returns on arrival."""
        check_move(self.name, distance_mm, mm_per_sec)
        forward = float(distance_mm) if mm_per_sec > 0 else -float(distance_mm)
        await self._drive(Course.straight(forward, abs(mm_per_sec)))

    async def spin(self, angle_deg: float, degs_per_sec: float, *, extra: Extra = None) -> None:
        """Turn by this angle, by the measured heading; returns when done."""
        check_move(self.name, angle_deg, degs_per_sec)
        await self._drive(Course.spin(angle_deg if degs_per_sec > 0 else -angle_deg, abs(degs_per_sec)))

    async def _drive(self, course: Course) -> None:
        goal = _Drive(course, self._period, trio.current_time() + course.time_limit)
        self._loop.pursue(goal)
        await self._loop.wait(goal)

    async def set_velocity(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        """Keep the measured velocity at `linear.y` (mm/s) and `angular.z` (degrees/s) until the next command."""
        check_finite("the velocity", linear.y, angular.z)
        await trio.lowlevel.checkpoint()
        if not linear.y and not angular.z:
            await self.stop()
            return
        self._loop.pursue(_Drive(Course.steady(linear.y, angular.z), self._period, inf))

    async def set_power(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        """Set the power of the base, without sensors."""
        await self._loop.stop()
        await self._base.set_power(linear, angular, extra=extra)

    async def stop(self, *, extra: Extra = None) -> None:
        """Stop the base; returns when it has stopped."""
        await self._loop.stop()
        await self._base.stop(extra=extra)

    async def is_moving(self) -> bool:
        """Return whether the base moves."""
        return self._loop.goal is not None or await self._base.is_moving()

    async def get_properties(self, *, extra: Extra = None) -> BaseProperties:
        """Return the dimensions of the base."""
        return await self._base.get_properties(extra=extra)


def _gains(config: SensorControlledBaseConfig, kind: str) -> Gains:
    for each in config.control_parameters:
        if each.type == kind and (each.p or each.i or each.d):
            return Gains(each.p, each.i, each.d)
    return DEFAULT


async def _by_orientation(sensor: MovementSensor) -> float:
    """Return the heading in degrees to the left."""
    return (await sensor.get_orientation()).theta


async def _by_compass(sensor: MovementSensor) -> float:
    return -(await sensor.get_compass_heading())

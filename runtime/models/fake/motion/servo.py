"""A simulated servo."""

from __future__ import annotations

from typing import ClassVar, Final

import trio

from catalogue.fake.motion.servo import FakeServoConfig
from hal.sim.bench.axes import SimAxes
from runtime.engine.components.motion.servo import Servo
from runtime.engine.resource import Attributes, Extra, Started
from runtime.models.fake.simulated import SimulatedResource
from runtime.models.motion import ExclusiveMotion
from schema.errors import ErrorKind, MachineError

SPEED: Final = 600.0  # degrees per second: 0.1 s for 60 degrees, typical of small servos


class FakeServo(SimulatedResource, Servo):
    """Moves to an angle at constant speed and holds it."""

    Config: ClassVar[type[Attributes]] = FakeServoConfig

    async def run(self, *, task_status: Started) -> None:
        """Add the servo to the simulated world until cancelled."""
        config: FakeServoConfig = self.attributes
        start = config.starting_position_deg
        self._motion = ExclusiveMotion()
        self._axis = SimAxes(self.name.short, "servo", [config.min_angle_deg if start is None else start])
        with self.world.holding(self._axis):
            task_status.started()
            await trio.sleep_forever()

    async def _halt(self) -> None:
        self._axis.halt(self.world.now())

    async def move(self, angle_deg: int, *, extra: Extra = None) -> None:
        """Move to the angle and return on arrival. INVALID if it is out of reach."""
        config: FakeServoConfig = self.attributes
        if not config.min_angle_deg <= angle_deg <= config.max_angle_deg:
            raise MachineError(
                f"{self.name}: an angle of {angle_deg} degrees is out of reach",
                kind=ErrorKind.INVALID,
                remedy=f"use {config.min_angle_deg:g} to {config.max_angle_deg:g}",
            )
        await self.access()
        async with self._motion.begin(self._halt):
            await self.world.sleep_until(self._axis.send([float(angle_deg)], [SPEED], self.world.now()))

    async def get_position(self, *, extra: Extra = None) -> int:
        """Return the rounded angle in degrees."""
        return round(self._axis.values(await self.access())[0])

    async def stop(self, *, extra: Extra = None) -> None:
        """Hold the current angle."""
        await self.access()
        await self._motion.supersede()
        await self._halt()

    async def is_moving(self) -> bool:
        """Return whether the servo is moving."""
        return self._axis.moving(await self.access())

"""A simulated servo."""

from __future__ import annotations

from typing import ClassVar, Final

from engine import Attributes, Extra, Servo, Started, model
from models.fake.common.axes import MovingAxes
from models.fake.servo.attributes import FakeServoConfig

SPEED: Final = 600.0  # degrees per second: 0.1 s for 60 degrees, typical of small servos


@model("rdk:builtin:fake")
class FakeServo(MovingAxes, Servo):
    """Moves to an angle at constant speed and holds it."""

    Config: ClassVar[type[Attributes]] = FakeServoConfig

    async def run(self, *, task_status: Started) -> None:
        """Add the servo to the simulated world until cancelled."""
        config: FakeServoConfig = self.attributes
        start = config.starting_position_deg
        await self.simulate("servo", [config.min_angle_deg if start is None else start], task_status)

    async def move(self, angle_deg: int, *, extra: Extra = None) -> None:
        """Move to the angle and return on arrival. INVALID if it is out of reach."""
        config: FakeServoConfig = self.attributes
        problem = f"an angle of {angle_deg} degrees is out of reach"
        self.check_range(problem, angle_deg, config.min_angle_deg, config.max_angle_deg)
        await self.move_axes([float(angle_deg)], [SPEED])

    async def get_position(self, *, extra: Extra = None) -> int:
        """Return the rounded angle in degrees."""
        return round((await self.positions())[0])

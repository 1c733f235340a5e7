"""A simulated base on two rows of wheels: its own, or those of configured motors."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, Final

import trio

from engine import Attributes, Context, Motor, Started, model
from hal.sim import SimBase, SimMotor
from models.common.motion import run_shielded
from models.fake.base.attributes import FakeBaseConfig
from models.fake.common.simulated import SimulatedResource
from models.fake.motor.attributes import FakeMotorConfig
from models.fake.motor.model import FakeMotor
from models.wheels.wheeled.model import WheeledBase
from schema import ResourceName

OWN_WHEEL_RPM: Final = 120.0  # top speed of wheels without a configured motor


@model("rdk:builtin:fake")
class FakeBase(SimulatedResource, WheeledBase):
    """Its position is visible in `get_status`, to cameras, and to movement sensors that name it."""

    Config: ClassVar[type[Attributes]] = FakeBaseConfig
    _device: SimBase | None = None

    async def run(self, *, task_status: Started) -> None:
        """Add the base and its wheels to the simulated world until cancelled."""
        config: FakeBaseConfig = self.attributes
        left, right = ([self.dependency(Motor, name) for name in names] for names in (config.left, config.right))
        async with trio.open_nursery() as nursery:
            if not config.left:
                left, right = [await self._own_wheel(nursery, "left")], [await self._own_wheel(nursery, "right")]
            self.use_motors(left, right)
            try:
                with ExitStack() as stack:
                    self._device = self._create_base()
                    if self._device is not None:
                        stack.enter_context(self.world.holding(self._device))
                    task_status.started()
                    await trio.sleep_forever()
            finally:
                await run_shielded(self.halt)

    async def begin(self) -> None:
        """Execute injected faults."""
        await self.access()

    def _create_base(self) -> SimBase | None:
        """Create the simulated base, or None unless all motors are simulated."""
        config: FakeBaseConfig = self.attributes
        left, right = (
            [self.world.find(SimMotor, motor.name.short) for motor in motors] for motors in (self.left, self.right)
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

    async def _own_wheel(self, nursery: trio.Nursery, side: str) -> Motor:
        name = ResourceName(Motor.API, f"{self.name.short}-{side}")
        wheel = FakeMotor(
            Context(name, FakeMotorConfig(max_rpm=OWN_WHEEL_RPM), {}, self.world, self.hardware, self.log)
        )
        await nursery.start(wheel.run)
        return wheel

    async def get_status(self) -> Mapping[str, Any]:
        """Return the position in mm and the heading in degrees to the left."""
        now = await self.access()
        if self._device is None:
            return {}
        place = self._device.place(now)
        return {"x_mm": place.x, "y_mm": place.y, "heading_deg": place.heading}

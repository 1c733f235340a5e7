"""A simulated encoder that counts the ticks of a motor's shaft, through pins of a board if configured."""

from __future__ import annotations

from typing import ClassVar

import trio

from engine import (
    Attributes,
    Board,
    Encoder,
    EncoderPosition,
    EncoderProperties,
    Extra,
    PositionType,
    Started,
    Unsupported,
    model,
)
from hal.sim import SimEncoder
from models.fake.common.simulated import SimulatedResource
from models.fake.encoder.attributes import FakeEncoderConfig


@model("rdk:builtin:fake")
class FakeEncoder(SimulatedResource, Encoder):
    """Counts the ticks of the motor that names it or, without such a motor, the edges of its pins."""

    Config: ClassVar[type[Attributes]] = FakeEncoderConfig

    async def run(self, *, task_status: Started) -> None:
        """Add the encoder to the simulated world until cancelled."""
        config: FakeEncoderConfig = self.attributes
        names: list[str] = []
        if config.pins is not None and config.board:
            self.dependency(Board, config.board)
            names = [name for name in (config.pins.a or config.pins.i, config.pins.b) if name]
        pins = [self.world.pin(config.board, name) for name in names]
        self._device = SimEncoder(self.name.short, self.world.wiring, pins)
        with self.world.holding(self._device):
            task_status.started()
            await trio.sleep_forever()

    async def get_position(self, position_type: PositionType | None = None, *, extra: Extra = None) -> EncoderPosition:
        """Return ticks since the last reset, or degrees. Unsupported for degrees unless a motor uses the encoder."""
        now = await self.access()
        ticks = self._device.ticks(now)
        if position_type is not PositionType.ANGLE_DEGREES:
            return EncoderPosition(float(ticks), PositionType.TICKS_COUNT)
        ticks_per_turn = self._device.ticks_per_rotation
        if ticks_per_turn is None:
            raise Unsupported(
                f"{self.name} has no number of ticks per revolution", remedy="configure it as the encoder of a motor"
            )
        return EncoderPosition(ticks * 360.0 / ticks_per_turn, PositionType.ANGLE_DEGREES)

    async def reset_position(self, *, extra: Extra = None) -> None:
        """Reset the count to 0."""
        self._device.reset(await self.access())

    async def get_properties(self, *, extra: Extra = None) -> EncoderProperties:
        """Report support of ticks, and of degrees while a motor uses the encoder."""
        await self.access()
        return EncoderProperties(
            ticks_count_supported=True, angle_degrees_supported=self._device.ticks_per_rotation is not None
        )

"""A simulated encoder: counts the ticks of the shaft it sits on, through the pins of a board if it has some."""

from __future__ import annotations

from typing import ClassVar

import trio

from catalogue.fake.encoder import FakeEncoderConfig
from hal.sim.encoder import SimEncoder
from runtime.builtin.fake.bench import OnBench
from runtime.components.board import Board
from runtime.components.encoder import Encoder, EncoderPosition, EncoderProperties, PositionType
from runtime.resource import Attributes, Extra, Started, Unsupported


class FakeEncoder(OnBench, Encoder):
    """Ticks of its disc, or of whoever toggles its pins while it has no disc."""

    Config: ClassVar[type[Attributes]] = FakeEncoderConfig

    async def run(self, *, task_status: Started) -> None:
        """On the bench while it runs."""
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
        """Ticks since the last reset, or degrees if a motor told how many ticks make a turn."""
        now = await self.access()
        ticks = self._device.ticks(now)
        if position_type is not PositionType.ANGLE_DEGREES:
            return EncoderPosition(float(ticks), PositionType.TICKS_COUNT)
        turn = self._device.ticks_per_rotation
        if turn is None:
            raise Unsupported(f"{self.name} does not know how many ticks make a turn", remedy="let a motor name it")
        return EncoderPosition(ticks * 360.0 / turn, PositionType.ANGLE_DEGREES)

    async def reset_position(self, *, extra: Extra = None) -> None:
        """Count from 0 again."""
        self._device.reset(await self.access())

    async def get_properties(self, *, extra: Extra = None) -> EncoderProperties:
        """Ticks always; degrees while a motor carries its disc."""
        await self.access()
        return EncoderProperties(
            ticks_count_supported=True, angle_degrees_supported=self._device.ticks_per_rotation is not None
        )

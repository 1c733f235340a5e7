"""A simulated switch."""

from __future__ import annotations

from typing import ClassVar

import trio

from engine import Attributes, Extra, Started, Switch, SwitchPositions, model
from hal.sim import SimControl
from models.fake.common.simulated import SimulatedResource
from models.fake.switch.attributes import FakeSwitchConfig
from schema import ErrorKind, MachineError


@model("rdk:builtin:fake")
class FakeSwitch(SimulatedResource, Switch):
    """Keeps the position that is set."""

    Config: ClassVar[type[Attributes]] = FakeSwitchConfig

    async def run(self, *, task_status: Started) -> None:
        """Add the switch to the simulated world until cancelled."""
        self._device = SimControl(self.name.short, "switch", float(self.attributes.initial_position))
        with self.world.holding(self._device):
            task_status.started()
            await trio.sleep_forever()

    async def set_position(self, position: int, *, extra: Extra = None) -> None:
        """Set the position. INVALID if there is no such position."""
        if not 0 <= position < self.attributes.count:
            raise MachineError(
                f"{self.name} has no position {position}",
                kind=ErrorKind.INVALID,
                remedy=f"use 0 to {self.attributes.count - 1}",
            )
        await self.access()
        self._device.value = float(position)

    async def get_position(self, *, extra: Extra = None) -> int:
        """Return the position."""
        await self.access()
        return int(self._device.value)

    async def get_number_of_positions(self, *, extra: Extra = None) -> SwitchPositions:
        """Return the configured number of positions and labels."""
        await self.access()
        return SwitchPositions(self.attributes.count, self.attributes.labels)

"""A simulated switch."""

from __future__ import annotations

from typing import ClassVar

import trio

from catalogue.fake.switch import FakeSwitchConfig
from hal.sim.axes import SimControl
from runtime.builtin.fake.bench import OnBench
from runtime.components.switch import Switch, SwitchPositions
from runtime.resource import Attributes, Extra, Started
from schema.errors import ErrorKind, MachineError


class FakeSwitch(OnBench, Switch):
    """Stays where it is put."""

    Config: ClassVar[type[Attributes]] = FakeSwitchConfig

    async def run(self, *, task_status: Started) -> None:
        """On the bench while it runs."""
        self._device = SimControl(self.name.short, "switch", float(self.attributes.initial_position))
        with self.world.holding(self._device):
            task_status.started()
            await trio.sleep_forever()

    async def set_position(self, position: int, *, extra: Extra = None) -> None:
        """Go there at once."""
        if not 0 <= position < self.attributes.count:
            raise MachineError(
                f"{self.name} has no position {position}",
                kind=ErrorKind.INVALID,
                remedy=f"use 0 to {self.attributes.count - 1}",
            )
        await self.access()
        self._device.value = float(position)

    async def get_position(self, *, extra: Extra = None) -> int:
        """Where it is."""
        await self.access()
        return int(self._device.value)

    async def get_number_of_positions(self, *, extra: Extra = None) -> SwitchPositions:
        """As configured."""
        await self.access()
        return SwitchPositions(self.attributes.count, self.attributes.labels)

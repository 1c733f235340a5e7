"""A simulated push button."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from engine import Button, Extra, Started, model
from hal.sim import SimControl
from models.fake.common.simulated import SimulatedResource


@model("rdk:builtin:fake")
class FakeButton(SimulatedResource, Button):
    """Counts its pushes. The count is in its status and in the camera image."""

    async def run(self, *, task_status: Started) -> None:
        """Add the button to the simulated world until cancelled."""
        self._device = SimControl(self.name.short, "button")
        with self.world.holding(self._device):
            task_status.started()
            await trio.sleep_forever()

    async def push(self, *, extra: Extra = None) -> None:
        """Count a push."""
        await self.access()
        self._device.value += 1

    async def get_status(self) -> Mapping[str, Any]:
        """Return the number of pushes."""
        await self.access()
        return {"pushes": int(self._device.value)}

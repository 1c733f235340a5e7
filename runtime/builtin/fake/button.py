"""A simulated push button."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from hal.sim.axes import SimControl
from runtime.builtin.fake.bench import OnBench
from runtime.components.button import Button
from runtime.resource import Extra, Started


class FakeButton(OnBench, Button):
    """Counts its pushes; the count is in its status and in the picture of the bench."""

    async def run(self, *, task_status: Started) -> None:
        """On the bench while it runs."""
        self._device = SimControl(self.name.short, "button")
        with self.world.holding(self._device):
            task_status.started()
            await trio.sleep_forever()

    async def push(self, *, extra: Extra = None) -> None:
        """One more."""
        await self.access()
        self._device.value += 1

    async def get_status(self) -> Mapping[str, Any]:
        """How often it was pushed."""
        await self.access()
        return {"pushes": int(self._device.value)}

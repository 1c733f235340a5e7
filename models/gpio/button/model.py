"""Button `gpio`: a button whose push is a pulse on a pin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import trio

from engine import Attributes, Board, Button, Extra, Started, model
from models.common.motion import run_shielded
from models.gpio.button.attributes import GpioButtonConfig


@model("rdk:builtin:gpio")
class GpioButton(Button):
    """The pin is at its released level at start and at stop."""

    Config: ClassVar[type[Attributes]] = GpioButtonConfig

    async def run(self, *, task_status: Started) -> None:
        """Reserve the pin until cancelled."""
        config: GpioButtonConfig = self.attributes
        self._board = board = self.dependency(Board, config.board)
        self._push_lock = trio.Lock()
        self._pushes = 0
        with self.reserve(board.identify(config.pin)):
            try:
                await self._write(False)
                task_status.started()
                await trio.sleep_forever()
            finally:
                await run_shielded(self._release)

    async def _write(self, pushed: bool) -> None:
        await self._board.set_gpio(self.attributes.pin, pushed is not self.attributes.active_low)

    async def _release(self) -> None:
        await self._write(False)

    async def push(self, *, extra: Extra = None) -> None:
        """Push, hold for `press_ms` and release. Cancellation releases at once. Concurrent pushes run in turn."""
        async with self._push_lock:
            try:
                await self._write(True)
                self._pushes += 1
                await trio.sleep(self.attributes.press_ms / 1000)
            finally:
                await run_shielded(self._release)

    async def get_status(self) -> Mapping[str, Any]:
        """Return the number of pushes."""
        return {"pushes": self._pushes}

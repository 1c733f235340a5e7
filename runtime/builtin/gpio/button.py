"""Button `gpio`: a push is a pulse on a pin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import trio

from catalogue.gpio.button import GpioButtonConfig
from runtime.builtin.motion import at_rest
from runtime.components.board import Board
from runtime.components.button import Button
from runtime.resource import Attributes, Extra, Started


class GpioButton(Button):
    """Not pushed when it starts and stops."""

    Config: ClassVar[type[Attributes]] = GpioButtonConfig

    async def run(self, *, task_status: Started) -> None:
        """Own the pin."""
        config: GpioButtonConfig = self.attributes
        self._board = board = self.dependency(Board, config.board)
        self._turn = trio.Lock()
        self._pushes = 0
        with self.reserve(board.identify(config.pin)):
            try:
                await self._write(False)
                task_status.started()
                await trio.sleep_forever()
            finally:
                await at_rest(self._let_go)

    async def _write(self, pushed: bool) -> None:
        await self._board.set_gpio(self.attributes.pin, pushed is not self.attributes.active_low)

    async def _let_go(self) -> None:
        await self._write(False)

    async def push(self, *, extra: Extra = None) -> None:
        """Push, hold for `press_ms`, let go; returns then. Cancelling lets go at once. Pushes wait for each other."""
        async with self._turn:
            try:
                await self._write(True)
                self._pushes += 1
                await trio.sleep(self.attributes.press_ms / 1000)
            finally:
                await at_rest(self._let_go)

    async def get_status(self) -> Mapping[str, Any]:
        """How often it was pushed."""
        return {"pushes": self._pushes}

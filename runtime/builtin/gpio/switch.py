"""Switch `gpio`: positions as levels of several pins."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import trio

from catalogue.gpio.switch import GpioSwitchConfig
from runtime.builtin.motion import at_rest, every, or_else
from runtime.components.board import Board
from runtime.components.switch import Switch, SwitchPositions
from runtime.resource import Attributes, Extra, Started
from schema.errors import ErrorKind, MachineError


class GpioSwitch(Switch):
    """Pins that go off do so before others go on. When it fails between two positions, it goes to the safe one."""

    Config: ClassVar[type[Attributes]] = GpioSwitchConfig

    async def run(self, *, task_status: Started) -> None:
        """Own the pins. In the safe position first and last."""
        config: GpioSwitchConfig = self.attributes
        self._board = board = self.dependency(Board, config.board)
        self._turn = trio.Lock()
        self._position = config.safe_position
        with self.reserve(*(board.identify(pin) for pin in config.pins)):
            try:
                await self._write(config.safe_position)
                task_status.started()
                await trio.sleep_forever()
            finally:
                await at_rest(self._safe)

    async def _safe(self) -> None:
        await self._write(self.attributes.safe_position)

    async def _write(self, position: int) -> None:
        levels = self.attributes.levels(position)
        await every(*(partial(self._pin, pin, on) for pin, on in levels.items() if not on))
        await every(*(partial(self._pin, pin, on) for pin, on in levels.items() if on))
        self._position = position

    async def _pin(self, pin: str, on: bool) -> None:
        await self._board.set_gpio(pin, on is not self.attributes.active_low)

    async def set_position(self, position: int, *, extra: Extra = None) -> None:
        """Go there at once."""
        check_position(str(self.name), position, self.attributes.count)
        async with self._turn, or_else(self._safe):
            await self._write(position)

    async def get_position(self, *, extra: Extra = None) -> int:
        """Where it was put."""
        await trio.lowlevel.checkpoint()
        return self._position

    async def get_number_of_positions(self, *, extra: Extra = None) -> SwitchPositions:
        """As configured."""
        await trio.lowlevel.checkpoint()
        return SwitchPositions(self.attributes.count, self.attributes.labels)


def check_position(name: str, position: int, count: int) -> None:
    """Refuse a position that there is not: INVALID."""
    if not 0 <= position < count:
        raise MachineError(f"{name} has no position {position}", kind=ErrorKind.INVALID, remedy=f"use 0 to {count - 1}")

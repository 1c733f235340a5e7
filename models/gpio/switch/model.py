"""Switch `gpio`: a switch whose positions are levels of several pins."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import trio

from engine import Attributes, Board, Extra, Started, Switch, SwitchPositions, model
from models.common.motion import halt_on_failure, run_all, run_shielded
from models.gpio.switch.attributes import GpioSwitchConfig
from schema import ErrorKind, MachineError


@model("rdk:builtin:gpio")
class GpioSwitch(Switch):
    """Pins are switched off before others are switched on. If a change fails, the switch goes to the safe position."""

    Config: ClassVar[type[Attributes]] = GpioSwitchConfig

    async def run(self, *, task_status: Started) -> None:
        """Reserve the pins until cancelled. The switch is in the safe position at start and at stop."""
        config: GpioSwitchConfig = self.attributes
        self._board = board = self.dependency(Board, config.board)
        self._change_lock = trio.Lock()
        self._position = config.safe_position
        with self.reserve(*(board.identify(pin) for pin in config.pins)):
            try:
                await self._write(config.safe_position)
                task_status.started()
                await trio.sleep_forever()
            finally:
                await run_shielded(self._go_to_safe_position)

    async def _go_to_safe_position(self) -> None:
        await self._write(self.attributes.safe_position)

    async def _write(self, position: int) -> None:
        levels = self.attributes.levels(position)
        await run_all(*(partial(self._set_pin, pin, on) for pin, on in levels.items() if not on))
        await run_all(*(partial(self._set_pin, pin, on) for pin, on in levels.items() if on))
        self._position = position

    async def _set_pin(self, pin: str, on: bool) -> None:
        await self._board.set_gpio(pin, on is not self.attributes.active_low)

    async def set_position(self, position: int, *, extra: Extra = None) -> None:
        """Set the position. INVALID if there is no such position."""
        check_position(str(self.name), position, self.attributes.count)
        async with self._change_lock, halt_on_failure(self._go_to_safe_position):
            await self._write(position)

    async def get_position(self, *, extra: Extra = None) -> int:
        """Return the position set last."""
        await trio.lowlevel.checkpoint()
        return self._position

    async def get_number_of_positions(self, *, extra: Extra = None) -> SwitchPositions:
        """Return the configured number of positions and labels."""
        await trio.lowlevel.checkpoint()
        return SwitchPositions(self.attributes.count, self.attributes.labels)


def check_position(name: str, position: int, count: int) -> None:
    """Raise INVALID if a position is not 0 to `count` - 1."""
    if not 0 <= position < count:
        raise MachineError(f"{name} has no position {position}", kind=ErrorKind.INVALID, remedy=f"use 0 to {count - 1}")

"""Switch `relay`: a relay on one pin, with minimum times for on and off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import trio

from engine import Attributes, Board, Extra, Started, Switch, SwitchPositions, model
from models.common.motion import halt_on_failure, run_shielded
from models.gpio.relay.attributes import RelayConfig
from models.gpio.switch.model import check_position
from schema import ErrorKind, MachineError

ON: Final = 1
LABELS: Final = ("off", "on")


@model("rdk:builtin:relay")
class Relay(Switch):
    """The positions are 0 (off) and 1 (on).

    A change that comes too early is refused, with the time to wait, instead of delayed, so that the relay never
    switches unexpectedly. When the driver stops, the relay goes to its safe position without waiting.
    """

    Config: ClassVar[type[Attributes]] = RelayConfig

    async def run(self, *, task_status: Started) -> None:
        """Reserve the pin until cancelled. The relay is in the safe position at start and at stop."""
        config: RelayConfig = self.attributes
        self._board = board = self.dependency(Board, config.board)
        self._change_lock = trio.Lock()
        with self.reserve(board.identify(config.pin)):
            try:
                await self._go_to_safe_position()
                task_status.started()
                await trio.sleep_forever()
            finally:
                await run_shielded(self._go_to_safe_position)

    async def _go_to_safe_position(self) -> None:
        await self._write(self.attributes.safe_position)

    async def _write(self, position: int) -> None:
        await self._board.set_gpio(self.attributes.pin, (position == ON) is not self.attributes.active_low)
        self._position = position
        self._since = trio.current_time()

    def _remaining_time(self) -> float:
        """Return the seconds for which the position must not change."""
        config: RelayConfig = self.attributes
        minimum = config.min_on_s if self._position == ON else config.min_off_s
        return max(0.0, self._since + minimum - trio.current_time())

    async def set_position(self, position: int, *, extra: Extra = None) -> None:
        """Switch the relay. PRECONDITION within the minimum time of the other position."""
        check_position(str(self.name), position, len(LABELS))
        async with self._change_lock:
            await trio.lowlevel.checkpoint()
            if position == self._position:
                return
            if remaining := self._remaining_time():
                raise MachineError(
                    f"{self.name} must stay {LABELS[self._position]} for another {remaining:.1f} s",
                    kind=ErrorKind.PRECONDITION,
                    remedy="try again after that time",
                )
            async with halt_on_failure(self._go_to_safe_position):
                await self._write(position)

    async def get_position(self, *, extra: Extra = None) -> int:
        """Return the position: 0 off, 1 on."""
        await trio.lowlevel.checkpoint()
        return self._position

    async def get_number_of_positions(self, *, extra: Extra = None) -> SwitchPositions:
        """Return the two positions and their labels."""
        await trio.lowlevel.checkpoint()
        return SwitchPositions(len(LABELS), LABELS)

    async def get_status(self) -> Mapping[str, Any]:
        """Return the position, its duration, and the remaining minimum time, in seconds."""
        return {
            "position": LABELS[self._position],
            "for_s": trio.current_time() - self._since,
            "stays_s": self._remaining_time(),
        }

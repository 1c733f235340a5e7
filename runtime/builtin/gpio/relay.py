"""Switch `relay`: one pin, off and on, with the rests that what it feeds needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import trio

from catalogue.gpio.relay import RelayConfig
from runtime.builtin.gpio.switch import check_position
from runtime.builtin.motion import at_rest, or_else
from runtime.components.board import Board
from runtime.components.switch import Switch, SwitchPositions
from runtime.resource import Attributes, Extra, Started
from schema.errors import ErrorKind, MachineError

ON: Final = 1
WORDS: Final = ("off", "on")


class Relay(Switch):
    """Positions are 0 (off) and 1 (on).

    A change that comes too early is refused with the time to wait, not delayed: what is on is never a surprise. Going
    to the safe position because the driver stops never waits.
    """

    Config: ClassVar[type[Attributes]] = RelayConfig

    async def run(self, *, task_status: Started) -> None:
        """Own the pin. In the safe position first and last."""
        config: RelayConfig = self.attributes
        self._board = board = self.dependency(Board, config.board)
        self._turn = trio.Lock()
        with self.reserve(board.identify(config.pin)):
            try:
                await self._safe()
                task_status.started()
                await trio.sleep_forever()
            finally:
                await at_rest(self._safe)

    async def _safe(self) -> None:
        await self._write(self.attributes.safe_position)

    async def _write(self, position: int) -> None:
        await self._board.set_gpio(self.attributes.pin, (position == ON) is not self.attributes.active_low)
        self._position = position
        self._since = trio.current_time()

    def _left(self) -> float:
        """Seconds that it has to stay as it is."""
        config: RelayConfig = self.attributes
        least = config.min_on_s if self._position == ON else config.min_off_s
        return max(0.0, self._since + least - trio.current_time())

    async def set_position(self, position: int, *, extra: Extra = None) -> None:
        """Switch it. PRECONDITION while it has to stay as it is; the position it is in already is no change."""
        check_position(str(self.name), position, len(WORDS))
        async with self._turn:
            await trio.lowlevel.checkpoint()
            if position == self._position:
                return
            if left := self._left():
                raise MachineError(
                    f"{self.name} has to stay {WORDS[self._position]} for {left:.1f} s more",
                    kind=ErrorKind.PRECONDITION,
                    remedy="try again then",
                )
            async with or_else(self._safe):
                await self._write(position)

    async def get_position(self, *, extra: Extra = None) -> int:
        """0 off, 1 on."""
        await trio.lowlevel.checkpoint()
        return self._position

    async def get_number_of_positions(self, *, extra: Extra = None) -> SwitchPositions:
        """Two, with labels."""
        await trio.lowlevel.checkpoint()
        return SwitchPositions(len(WORDS), WORDS)

    async def get_status(self) -> Mapping[str, Any]:
        """The position, for how long, and how long it has to stay there."""
        return {
            "position": WORDS[self._position],
            "for_s": trio.current_time() - self._since,
            "stays_s": self._left(),
        }

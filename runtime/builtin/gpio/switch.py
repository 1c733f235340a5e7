"""Switch `gpio`: positions as levels of several pins."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar, Literal

import msgspec
import trio

from runtime.builtin.motion import at_rest, every, or_else
from runtime.components.board import Board
from runtime.components.switch import Switch, SwitchPositions
from runtime.resource import Attributes, Extra, Started
from schema.errors import ErrorKind, MachineError


class GpioSwitchConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a switch on pins."""

    board: str  # name of the board with the pins
    pins: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # of that board; for binary the least bit first
    encoding: Literal["one_hot", "binary"] = "one_hot"  # one_hot: one pin for a position; binary: its number in bits
    position_count: Annotated[int, msgspec.Meta(ge=1)] | None = None  # number of positions; what the pins can tell
    labels: tuple[str, ...] = ()  # names of the positions: none or one each
    safe_position: Annotated[int, msgspec.Meta(ge=0)] = 0  # the position at start, and when it stops
    active_low: bool = False  # a pin is on when it is low

    def __post_init__(self) -> None:
        if len(set(self.pins)) != len(self.pins):
            raise ValueError("a pin is named twice")
        if self.count > self.most:
            raise ValueError(
                f"{self.count} positions on {len(self.pins)} pins: {self.encoding} can tell at most {self.most}"
            )
        if self.labels and len(self.labels) != self.count:
            raise ValueError(f"{len(self.labels)} labels for {self.count} positions")
        if self.safe_position >= self.count:
            raise ValueError(f"safe_position {self.safe_position} is not below {self.count}")

    @property
    def most(self) -> int:
        """How many positions the pins can tell."""
        return len(self.pins) if self.encoding == "one_hot" else int(2 ** len(self.pins))

    @property
    def count(self) -> int:
        """Number of positions."""
        return self.position_count or self.most

    def levels(self, position: int) -> dict[str, bool]:
        """Which pins are on in a position."""
        if self.encoding == "one_hot":
            return {pin: index == position for index, pin in enumerate(self.pins)}
        return {pin: bool(position >> bit & 1) for bit, pin in enumerate(self.pins)}

    def requires(self) -> list[str]:
        """Its board."""
        return [self.board]


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

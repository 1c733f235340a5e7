"""Sensor `gpio_input`: levels of pins, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec

from runtime.components.board import Board
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Extra, Started, Value


class GpioInputConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a sensor on input pins."""

    board: str  # name of the board with the pins
    pins: Annotated[dict[str, str], msgspec.Meta(min_length=1)]  # name of a reading -> pin of that board
    invert: tuple[str, ...] = ()  # names of readings that are true when their pin is low

    def __post_init__(self) -> None:
        for name in self.invert:
            if name not in self.pins:
                raise ValueError(f"invert names {name!r}, which is none of {', '.join(self.pins)}")

    def requires(self) -> list[str]:
        """Its board."""
        return [self.board]


class GpioInput(Sensor):
    """One reading for each pin: true or false."""

    Config: ClassVar[type[Attributes]] = GpioInputConfig

    async def run(self, *, task_status: Started) -> None:
        """Own the pins."""
        config: GpioInputConfig = self.attributes
        self._board = self.dependency(Board, config.board)
        with self.reserve(*(self._board.identify(pin) for pin in config.pins.values())):
            await super().run(task_status=task_status)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """The levels now, read one after the other."""
        config: GpioInputConfig = self.attributes
        levels = {name: await self._board.get_gpio(pin) for name, pin in config.pins.items()}
        return {name: high is not (name in config.invert) for name, high in levels.items()}

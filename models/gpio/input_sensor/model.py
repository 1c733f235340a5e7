"""Sensor `gpio_input`: levels of pins as readings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine import Attributes, Board, Extra, Sensor, Started, Value, model
from models.gpio.input_sensor.attributes import GpioInputConfig


@model("rdk:builtin:gpio_input")
class GpioInput(Sensor):
    """One reading per pin: true or false."""

    Config: ClassVar[type[Attributes]] = GpioInputConfig

    async def run(self, *, task_status: Started) -> None:
        """Reserve the pins until cancelled."""
        config: GpioInputConfig = self.attributes
        self._board = self.dependency(Board, config.board)
        with self.reserve(*(self._board.identify(pin) for pin in config.pins.values())):
            await super().run(task_status=task_status)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return the current levels, read one after the other."""
        config: GpioInputConfig = self.attributes
        levels = {name: await self._board.get_gpio(pin) for name, pin in config.pins.items()}
        return {name: high is not (name in config.invert) for name, high in levels.items()}

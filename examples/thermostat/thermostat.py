"""A thermostat: keeps the air of a box at a temperature, by a heater behind a relay and a fan with PWM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import msgspec
import trio

from runtime.components.board import Board
from runtime.components.sensor import Sensor
from runtime.components.switch import Switch
from runtime.resource import Attributes, Context, Started, model
from runtime.services.generic import GenericService
from schema.errors import ErrorKind, MachineError


class ThermostatConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the thermostat."""

    sensor: str  # name of the sensor with the reading temperature_c
    heater: str  # name of the switch of the heater: 0 off, 1 on
    board: str  # name of the board with the fan
    fan_pin: str  # pin of that board that drives the fan
    set_point_c: float  # °C that the air is kept at
    hysteresis_c: Annotated[float, msgspec.Meta(gt=0)] = 1.0  # °C below the set point at which the heater comes on
    limit_c: float = 60.0  # °C above which nothing may be: the heater is off and the fan at full
    period_s: Annotated[float, msgspec.Meta(gt=0)] = 0.5  # seconds between two decisions
    answer_s: Annotated[float, msgspec.Meta(gt=0)] = 2.0  # seconds in which the sensor has to answer

    def requires(self) -> list[str]:
        """All it works with."""
        return [self.sensor, self.heater, self.board]


@dataclass(frozen=True, slots=True)
class Output:
    """What it does: heat or not, and the duty of the fan from 0 to 1."""

    heat: bool = False
    fan: float = 0.0


OFF = Output()


def decide(now: Output, temperature: float, set_point: float, config: ThermostatConfig) -> Output:
    """The next output: the heater has a hysteresis below the set point, the fan is proportional above it."""
    if temperature > config.limit_c:
        return Output(heat=False, fan=1.0)
    heat = temperature < set_point - config.hysteresis_c or (now.heat and temperature < set_point)
    excess = (temperature - set_point - config.hysteresis_c) / (4 * config.hysteresis_c)
    return Output(heat, min(1.0, max(0.0, round(excess, 2))))


@model("acme:demo:thermostat")
class Thermostat(GenericService):
    """The command `{"set_point_c": 30}` changes the set point until the next start; the status tells the rest.

    Without a temperature it does not heat. When it stops for any reason, heater and fan are off.
    """

    Config: ClassVar[type[Attributes]] = ThermostatConfig
    attributes: ThermostatConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = self.attributes
        self._sensor = self.dependency(Sensor, config.sensor)
        self._heater = self.dependency(Switch, config.heater)
        self._board = self.dependency(Board, config.board)
        self._set_point = config.set_point_c
        self._output = OFF
        self._temperature: float | None = None
        self._fault = ""

    async def run(self, *, task_status: Started) -> None:
        """Decide at a steady beat."""
        try:
            await self._apply(OFF)
            async with self.hardware.ticks(self.attributes.period_s) as beats:
                task_status.started()
                async for _ in beats:
                    await self._apply(await self._next())
        finally:
            with trio.move_on_after(2, shield=True):
                await self._apply(OFF)

    async def _next(self) -> Output:
        config = self.attributes
        self._temperature, fault = None, "the sensor does not answer"
        with trio.move_on_after(config.answer_s):
            try:
                self._temperature = float((await self._sensor.get_readings())["temperature_c"])  # type: ignore[arg-type]
                fault = f"above {config.limit_c:g} °C" if self._temperature > config.limit_c else ""
            except MachineError as error:
                fault = str(error)
        if fault != self._fault:
            self.log.warning("fault" if fault else "the fault is over", reason=fault or self._fault)
            self._fault = fault
        return OFF if self._temperature is None else decide(self._output, self._temperature, self._set_point, config)

    async def _apply(self, output: Output) -> None:
        await self._heater.set_position(int(output.heat))
        await self._board.set_pwm(self.attributes.fan_pin, output.fan)
        self._output = output

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """`set_point_c`: a new set point, at most `limit_c`."""
        await trio.lowlevel.checkpoint()
        wanted = command.get("set_point_c")
        if not isinstance(wanted, (int, float)) or not wanted <= self.attributes.limit_c:
            raise MachineError(
                f"set_point_c {wanted!r} is not a temperature up to {self.attributes.limit_c:g}", kind=ErrorKind.INVALID
            )
        self._set_point = float(wanted)
        return {"set_point_c": self._set_point}

    async def get_status(self) -> Mapping[str, Any]:
        """The set point, the temperature (None without one), what it does, and what is wrong."""
        await trio.lowlevel.checkpoint()
        return {
            "set_point_c": self._set_point,
            "temperature_c": self._temperature,
            "heating": self._output.heat,
            "fan": self._output.fan,
            "fault": self._fault,
        }

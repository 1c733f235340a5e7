"""A thermostat that keeps the air of a box at a temperature, with a heater on a relay and a PWM fan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import msgspec
import trio

from engine import Attributes, Board, Context, GenericService, Sensor, Started, Switch, model
from schema import ErrorKind, MachineError


class ThermostatConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the thermostat."""

    sensor: str  # name of the sensor with the reading temperature_c
    heater: str  # name of the switch of the heater: 0 off, 1 on
    board: str  # name of the board with the fan
    fan_pin: str  # pin of that board that drives the fan
    set_point_c: float  # target temperature of the air in °C
    hysteresis_c: Annotated[float, msgspec.Meta(gt=0)] = 1.0  # °C below the set point at which the heater turns on
    limit_c: float = 60.0  # maximum in °C: above it the heater is off and the fan at full speed
    period_s: Annotated[float, msgspec.Meta(gt=0)] = 0.5  # seconds between two decisions
    answer_s: Annotated[float, msgspec.Meta(gt=0)] = 2.0  # seconds within which the sensor must answer

    def requires(self) -> list[str]:
        """Require the sensor, the heater and the board."""
        return [self.sensor, self.heater, self.board]


@dataclass(frozen=True, slots=True)
class Output:
    """The outputs: whether to heat, and the duty cycle of the fan from 0 to 1."""

    heat: bool = False
    fan: float = 0.0


OFF = Output()


def decide(now: Output, temperature: float, set_point: float, config: ThermostatConfig) -> Output:
    """Return the next output. The heater has a hysteresis below the set point; the fan is proportional above it."""
    if temperature > config.limit_c:
        return Output(heat=False, fan=1.0)
    heat = temperature < set_point - config.hysteresis_c or (now.heat and temperature < set_point)
    excess = (temperature - set_point - config.hysteresis_c) / (4 * config.hysteresis_c)
    return Output(heat, min(1.0, max(0.0, round(excess, 2))))


@model("acme:demo:thermostat")
class Thermostat(GenericService):
    """A thermostat. The command `{"set_point_c": 30}` changes the set point until the next start.

    Without a temperature it does not heat. Whenever it stops, heater and fan are off.
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
        """Decide at regular intervals."""
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
        """Set a new set point, `set_point_c`, of at most `limit_c`."""
        await trio.lowlevel.checkpoint()
        set_point = command.get("set_point_c")
        if not isinstance(set_point, (int, float)) or not set_point <= self.attributes.limit_c:
            raise MachineError(
                f"set_point_c {set_point!r} is not a temperature up to {self.attributes.limit_c:g}",
                kind=ErrorKind.INVALID,
            )
        self._set_point = float(set_point)
        return {"set_point_c": self._set_point}

    async def get_status(self) -> Mapping[str, Any]:
        """Return the set point, the temperature (None if unknown), the outputs, and the fault."""
        await trio.lowlevel.checkpoint()
        return {
            "set_point_c": self._set_point,
            "temperature_c": self._temperature,
            "heating": self._output.heat,
            "fan": self._output.fan,
            "fault": self._fault,
        }

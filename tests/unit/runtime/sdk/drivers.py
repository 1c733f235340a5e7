"""Drivers for modules of tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar

import trio

from engine.components.controls.board import Board, Tick
from engine.components.generic import Generic
from engine.components.motion.motor import Motor, Powered
from engine.components.sensing.sensor import Sensor
from engine.resource import Attributes, Context, Extra, Started, Value, model
from schema.errors import ErrorKind, MachineError

history: list[str] = []


class ThermometerConfig(Attributes, kw_only=True, frozen=True):
    offset: float = 0.0
    count: int = 1
    fail: str = ""
    slow_s: float = 0.0

    def __post_init__(self) -> None:
        if self.offset > 100:
            raise ValueError("offset is above 100")


@model("acme:demo:thermometer")
class Thermometer(Sensor):
    """A room that is always as warm.

    Whatever the weather.
    """

    Config: ClassVar[type[Attributes]] = ThermometerConfig
    attributes: ThermometerConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        if self.attributes.fail == "constructor":
            raise RuntimeError("the thermometer is broken")
        self.broken = trio.Event()

    async def run(self, *, task_status: Started) -> None:
        history.append(f"start {self.name.name}")
        try:
            await trio.sleep(self.attributes.slow_s)
            if self.attributes.fail == "run":
                raise MachineError("no thermometer there", kind=ErrorKind.PRECONDITION, remedy="plug it in")
            task_status.started()
            await self.broken.wait()
            raise MachineError("it was unplugged")
        finally:
            history.append(f"stop {self.name.name}")

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        self.log.info("asked", count=self.attributes.count)
        return {"temperature_c": 20.5 + self.attributes.offset}

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        self.broken.set()
        await trio.sleep_forever()
        return {}


class MeanConfig(Attributes, kw_only=True, frozen=True):
    sensor: str
    other: str = ""

    def requires(self) -> list[str]:
        if self.sensor == "explode":
            raise RuntimeError("boom")
        return [self.sensor]

    def uses(self) -> list[str]:
        return [self.other, self.sensor] if self.other else []


@model("acme:demo:mean")
class Mean(Generic):
    """Uses a sensor."""

    Config: ClassVar[type[Attributes]] = MeanConfig
    attributes: MeanConfig

    async def run(self, *, task_status: Started) -> None:
        history.append(f"start {self.name.name}")
        try:
            await super().run(task_status=task_status)
        finally:
            with trio.CancelScope(shield=True):
                await self.dependency(Sensor, self.attributes.sensor).get_readings()  # it must still be running
            history.append(f"stop {self.name.name}")

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        return dict(await self.dependency(Sensor, self.attributes.sensor).get_readings())


@model("acme:demo:follower")
class Follower(Generic):
    """Depend on the resources that the configuration names."""


@model("acme:demo:drive")
class Drive(Motor):
    """Move until stopped."""

    power = 0.0

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        self.power = power_pct

    async def stop(self, *, extra: Extra = None) -> None:
        self.power = 0.0
        history.append("at rest")

    async def is_powered(self, *, extra: Extra = None) -> Powered:
        return Powered(self.power != 0, self.power)


@model("acme:demo:pins")
class Pins(Board):
    """Produce ticks without end."""

    async def stream_ticks(self, pin_names: Sequence[str], *, extra: Extra = None) -> AsyncGenerator[Tick, None]:
        history.append("ticks begin")
        try:
            for number in range(1_000_000):
                yield Tick(pin_names[0], number, bool(number % 2))
                await trio.sleep(1)
        finally:
            history.append("ticks end")

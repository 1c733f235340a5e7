"""A row of CONVERTERS for one field changes the arguments and results of one method everywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.apis import BASES
from engine.components.motion.motor import Motor
from rpc.api.arguments import parse_arguments
from rpc.api.client import ApiClient, build_request, find_method
from rpc.api.convert.converters import CONVERTERS, Converter
from rpc.api.convert.fit import FitError
from rpc.api.convert.hints import Hint
from rpc.api.descriptions import schema_of, type_text
from rpc.api.memory import MemoryChannel
from rpc.api.server.check import misfits
from rpc.api.server.router import ApiRouter

MOTOR = "rdk:component:motor"
REQUEST = "viam.component.motor.v1.SetPowerRequest.power_pct"
REPLY = "viam.component.motor.v1.GetPositionResponse.position"


def _fill(name: str) -> Any:
    def fill(message: Any, value: Any) -> None:
        if not isinstance(value, (int, float)):
            raise FitError("percent", value)
        setattr(message, name, value / 100)

    return fill


def percent(name: str) -> Converter:
    def read(message: Any) -> float:
        return float(getattr(message, name) * 100)

    return Converter("percent", {"type": "number"}, _fill(name), read, {float: read}, "number")


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONVERTERS, REQUEST, percent("power_pct"))  # type: ignore[arg-type]
    monkeypatch.setitem(CONVERTERS, REPLY, percent("position"))  # type: ignore[arg-type]


class Wheel(Motor):
    powers: list[float] = []  # noqa: RUF012

    async def set_power(self, power_pct: float, *, extra: Any = None) -> None:
        self.powers.append(power_pct)

    async def get_position(self, *, extra: Any = None) -> float:
        return 50.0


class Target:
    @asynccontextmanager
    async def call(self, request: Any) -> AsyncIterator[Wheel]:
        yield Wheel.__new__(Wheel)


async def test_client_and_server_use_it() -> None:
    client = ApiClient(MemoryChannel(ApiRouter(Target(), bases=BASES)))
    await client.call(MOTOR, "m", "set_power", power_pct=25)
    assert Wheel.powers == [25.0]
    assert build_request(find_method(MOTOR, "set_power"), "m", {"power_pct": 25}).power_pct == 0.25
    assert await client.call(MOTOR, "m", "get_position") == 50.0


def test_help_and_check_and_command_line_use_it() -> None:
    field = find_method(MOTOR, "set_power").arguments["power_pct"]
    assert type_text(field) == "percent"
    assert schema_of(field) == {"type": "number"}
    assert misfits(field, Hint(cls=float), "power_pct") == []
    assert misfits(field, Hint(cls=str), "power_pct") == ["power_pct must be float"]
    assert parse_arguments(MOTOR, "set_power", ["power_pct=25"]) == {"power_pct": 25}

"""Values outside the range of the published API are refused before a driver sees them."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from engine.calls.ranges import check_ranges
from runtime.server.memory import open_machine
from schema.errors import ErrorKind, MachineError
from schema.names import API
from schema.space.geometry import Vector3

MOTOR, BASE, BOARD = "rdk:component:motor", "rdk:component:base", "rdk:component:board"


@pytest.mark.parametrize(
    ("api", "method", "arguments", "words"),
    [
        (
            MOTOR,
            "set_power",
            {"power_pct": 5},
            "power_pct: a power of 5 is out of range: use -1 (full power backwards) to 1 (full power forwards); "
            "5 % is 0.05",
        ),
        (MOTOR, "set_power", {"power_pct": -100.0}, "-100 % is -1"),
        (MOTOR, "set_power", {"power_pct": 1.01}, "1.01 % is 0.0101"),
        (MOTOR, "set_power", {"power_pct": nan}, "power_pct: a power of nan is out of range"),
        (MOTOR, "set_power", {"power_pct": -inf}, "power_pct: a power of -inf is out of range"),
        (
            BASE,
            "set_power",
            {"linear": Vector3(0, 50, 0), "angular": Vector3()},
            "linear.y: a power of 50 is out of range",
        ),
        (
            BASE,
            "set_power",
            {"linear": Vector3(), "angular": Vector3(0, 0, -2)},
            "angular.z: a power of -2 is out of range",
        ),
        (BOARD, "set_pwm", {"pin": "1", "duty_cycle_pct": 25}, "use 0 (always off) to 1 (always on); 25 % is 0.25"),
        (BOARD, "set_pwm", {"pin": "1", "duty_cycle_pct": -0.5}, "a duty cycle of -0.5 is out of range: use 0"),
    ],
)
def test_out_of_range(api: str, method: str, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(MachineError) as caught:
        check_ranges(API.parse(api), method, arguments)
    assert words in str(caught.value)
    assert caught.value.kind is ErrorKind.INVALID


@pytest.mark.parametrize("power", [-1, 0, 1.0, 0.1 + 0.2 + 0.7, 1.0000001])
def test_in_range(power: float) -> None:
    check_ranges(API.parse(MOTOR), "set_power", {"power_pct": power})
    check_ranges(API.parse(BASE), "set_power", {"linear": Vector3(0, power, 0)})
    check_ranges(API.parse(MOTOR), "set_rpm", {"rpm": 5})


async def test_a_call_is_refused_and_moves_nothing(autojump_clock: object) -> None:
    motor = {"name": "m", "api": MOTOR, "model": "fake"}
    async with open_machine({"components": [motor]}) as memory:
        await memory.machine.lifecycle.running.wait()
        client = memory.client()
        with pytest.raises(MachineError, match=r"5 % is 0\.05") as caught:
            await client.call(MOTOR, "m", "set_power", power_pct=5)
        assert caught.value.kind is ErrorKind.INVALID
        assert (await client.call(MOTOR, "m", "is_powered"))["is_on"] is False
        await client.call(MOTOR, "m", "set_power", power_pct=-0.5)
        assert (await client.call(MOTOR, "m", "is_powered"))["power_pct"] == -0.5

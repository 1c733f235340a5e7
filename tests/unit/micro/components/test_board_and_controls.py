from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from micro.wire import faults
from micro.wire.faults import CallFailure
from tests.unit.micro.bench import BOARD, MicroBench, component


async def test_pins_pwm_and_analogs() -> None:
    board = component(
        "board",
        "b",
        "rp2",
        pins={"lamp": "25"},
        analogs=[{"name": "light", "pin": "4"}],
        digital_interrupts=[{"name": "beat", "pin": "7", "bias": "up", "active_low": True}],
    )
    bench = MicroBench(board)
    await bench.call("board", "SetGPIO", name="b", pin="lamp", high=True)
    assert bench.port.levels["25"]
    assert (await bench.call("board", "GetGPIO", name="b", pin="25"))["high"]
    await bench.call("board", "SetPWMFrequency", name="b", pin="3", frequency_hz=50)
    await bench.call("board", "SetPWM", name="b", pin="3", duty_cycle_pct=0.25)
    assert bench.port.pwm["3"] == (0.25, 50)
    await bench.call("board", "SetPWMFrequency", name="b", pin="3", frequency_hz=1000)
    assert bench.port.pwm["3"] == (0.25, 1000)
    assert (await bench.call("board", "PWM", name="b", pin="3"))["duty_cycle_pct"] == 0.25
    assert (await bench.call("board", "PWMFrequency", name="b", pin="4"))["frequency_hz"] == 800
    bench.port.analogs["4"] = 32768
    analog = await bench.call("board", "ReadAnalogReader", board_name="b", analog_reader_name="light")
    assert analog["value"] * analog["step_size"] == pytest.approx(1.65, rel=1e-4)
    for _ in range(3):
        bench.port.drive("7", False)
        bench.port.drive("7", True)
    beats = await bench.call("board", "GetDigitalInterruptValue", board_name="b", digital_interrupt_name="beat")
    assert beats["value"] == 3
    bench.apply()
    assert {"25", "3", "7"} <= set(bench.port.released)


@pytest.mark.parametrize(
    ("method", "fields", "status", "text"),
    [
        ("SetGPIO", {"pin": "64"}, faults.INVALID, "there is no pin '64'"),
        ("SetGPIO", {"pin": ""}, faults.INVALID, "there is no pin ''"),
        ("SetPWM", {"pin": "1", "duty_cycle_pct": 1.5}, faults.INVALID, "duty_cycle_pct is 1.5"),
        ("SetPWMFrequency", {"pin": "1", "frequency_hz": 1 << 31}, faults.INVALID, "frequency_hz"),
        ("WriteAnalog", {"pin": "1"}, faults.UNIMPLEMENTED, "does not have WriteAnalog"),
        ("SetPowerMode", {}, faults.UNIMPLEMENTED, "no power modes"),
    ],
)
async def test_refused_calls_of_boards(method: str, fields: dict[str, object], status: int, text: str) -> None:
    bench = MicroBench(BOARD)
    with pytest.raises(CallFailure, match=text) as caught:
        await bench.call("board", method, name="pins", **fields)
    assert caught.value.status == status


async def test_unknown_inputs_are_named() -> None:
    bench = MicroBench(component("board", "b", analogs=[{"name": "light", "pin": "4"}]))
    with pytest.raises(CallFailure, match="analog 'dark' is not configured: there is light"):
        await bench.call("board", "ReadAnalogReader", board_name="b", analog_reader_name="dark")


async def test_buttons_let_go(autojump_clock: MockClock) -> None:
    bench = MicroBench(BOARD, component("button", "b", "gpio", board="pins", pin="5", press_ms=300, active_low=True))
    assert bench.port.levels["5"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: bench.call("button", "Push", name="b"))
        await trio.sleep(0.1)
        assert not bench.port.levels["5"]
        nursery.cancel_scope.cancel()
    assert bench.port.levels["5"]


@pytest.mark.parametrize(("encoding", "count", "levels"), [("one_hot", 2, "01"), ("binary", 4, "01")])
async def test_switches(encoding: str, count: int, levels: str) -> None:
    switch = component("switch", "s", "gpio", board="pins", pins=["5", "6"], encoding=encoding)
    bench = MicroBench(BOARD, switch)
    assert (await bench.call("switch", "GetNumberOfPositions", name="s"))["number_of_positions"] == count
    position = 1 if encoding == "one_hot" else 2
    await bench.call("switch", "SetPosition", name="s", position=position)
    assert [bench.port.levels[pin] for pin in ("5", "6")] == [digit == "1" for digit in levels]
    with pytest.raises(CallFailure, match=f"expected 0 to {count - 1}"):
        await bench.call("switch", "SetPosition", name="s", position=count)
    bench.machine.halt_all()
    assert (await bench.call("switch", "GetPosition", name="s"))["position"] == 0


async def test_inputs_and_the_computer_are_sensors() -> None:
    bench = MicroBench(
        BOARD,
        component("sensor", "doors", "gpio_input", board="pins", pins={"front": "5", "back": "6"}, invert=["back"]),
        component("sensor", "self", "host"),
    )
    bench.port.drive("5", True)
    readings = (await bench.call("sensor", "GetReadings", name="doors"))["readings"]
    assert readings == {"front": True, "back": True}
    assert (await bench.call("sensor", "GetReadings", name="self"))["readings"]["heap_free_bytes"] == 1 << 20


FAKES = {
    "base": ["SetPower", "Stop", "IsMoving", "GetProperties", "MoveStraight", "Spin", "SetVelocity"],
    "button": ["Push", "DoCommand"],
    "encoder": ["GetPosition", "ResetPosition", "GetProperties"],
    "generic": ["DoCommand"],
    "motor": ["SetPower", "GetPosition", "Stop", "IsMoving", "IsPowered", "GetProperties", "SetRPM"],
    "movement_sensor": ["GetLinearAcceleration", "GetAngularVelocity", "GetProperties", "GetReadings"],
    "power_sensor": ["GetVoltage", "GetCurrent", "GetPower", "GetReadings"],
    "sensor": ["GetReadings"],
    "servo": ["Move", "GetPosition", "Stop", "IsMoving"],
    "switch": ["SetPosition", "GetPosition", "GetNumberOfPositions"],
}


@pytest.mark.parametrize("api", FAKES)
async def test_fakes_answer_their_calls(api: str) -> None:
    bench = MicroBench(component(api, "x"))
    assert bench.states() == {"x": (3, "")}
    for method in FAKES[api]:
        await bench.call(api, method, name="x")


async def test_commands_are_echoed() -> None:
    bench = MicroBench(component("generic", "x"))
    command = {"a": [1.0, {"b": None}], "c": "d"}
    assert (await bench.call("generic", "DoCommand", name="x", command=command))["result"] == command


async def test_sensors_of_other_kinds_have_readings() -> None:
    bench = MicroBench(component("power_sensor", "supply"))
    readings = (await bench.call("sensor", "GetReadings", name="supply"))["readings"]
    assert readings == {"volts": 5.0, "amperes": 0.5, "watts": 2.5, "is_ac": False}

"""Servo, switch, relay and button: the levels of their pins at start, in use, after failures and at the end."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from engine.components.controls.switch import SwitchPositions
from hal.errors import Fault, HalError
from hal.sim.faults import FaultPlan
from models.gpio.relay.attributes import RelayConfig
from models.gpio.servo.attributes import GpioServoConfig
from models.gpio.switch.attributes import GpioSwitchConfig
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench
from tests.unit.models.gpio.cancelling import cancelled_at_every_step
from tests.unit.models.gpio.support import LateBoard, board

# ---- servo


async def servo(bench: Bench, **attributes: Any) -> Any:
    return await bench.add("servo", "arm", {"board": "pi", "pin": "12", **attributes}, model="rdk:builtin:gpio")


async def width(pi: Any) -> float:
    """Return the pulse width in µs."""
    return float(await pi.pwm("12") / await pi.pwm_frequency("12") * 1e6)


@pytest.mark.parametrize("frequency", [50, 300])
async def test_angles_are_widths(bench: Bench, autojump_clock: MockClock, frequency: int) -> None:
    pi = await board(bench)
    arm = await servo(bench, frequency_hz=frequency)
    for angle, expected in ((0, 500), (90, 1500), (180, 2500), (45, 1000)):
        await arm.move(angle)
        assert await width(pi) == pytest.approx(expected)
        assert await pi.pwm_frequency("12") == frequency
        assert await arm.get_position() == angle
        assert not await arm.is_moving()


async def test_it_is_not_driven_until_it_is_moved(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    arm = await servo(bench)
    assert await pi.pwm("12") == 0
    with pytest.raises(MachineError, match="configure starting_position_deg") as caught:
        await arm.get_position()
    assert caught.value.kind is ErrorKind.PRECONDITION
    await bench.remove(arm)
    arm = await servo(bench, starting_position_deg=90)
    assert await width(pi) == pytest.approx(1500)
    assert await arm.get_position() == 90
    await bench.remove(arm)
    assert await pi.pwm("12") == 0


async def test_the_range_is_configured(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    arm = await servo(bench, min_angle_deg=30, max_angle_deg=120, min_width_us=1000, max_width_us=2000)
    await arm.move(75)
    assert await width(pi) == pytest.approx(1500)
    for angle in (29, 121):
        with pytest.raises(MachineError, match="use 30 to 120"):
            await arm.move(angle)


async def test_a_limited_movement_takes_its_time(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    arm = await servo(bench, speed_deg_per_s=60, starting_position_deg=0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(arm.move, 90)
        await trio.sleep(0.75)
        assert await arm.is_moving()
        assert await arm.get_position() == pytest.approx(45, abs=2)
        assert await width(pi) == pytest.approx(1000, abs=25)
        begin = trio.current_time()
    assert trio.current_time() - begin == pytest.approx(0.75, abs=0.05)
    assert await arm.get_position() == 90
    with trio.move_on_after(0.5):
        await arm.move(0)
    assert await arm.get_position() == pytest.approx(60, abs=2)
    assert not await arm.is_moving()


@pytest.mark.parametrize("at_stop", ["hold", "release"])
async def test_effects_of_stop(bench: Bench, autojump_clock: MockClock, at_stop: str) -> None:
    pi = await board(bench)
    arm = await servo(bench, at_stop=at_stop, speed_deg_per_s=60, starting_position_deg=0)
    async with trio.open_nursery() as nursery:

        async def move() -> None:
            with pytest.raises(MachineError, match="has replaced"):
                await arm.move(180)

        nursery.start_soon(move)
        await trio.sleep(1)
        await arm.stop()
    reached = await arm.get_position()
    assert reached == pytest.approx(60, abs=2)
    pulses = await pi.pwm("12") > 0
    assert pulses is (at_stop == "hold")
    assert (await arm.get_status())["pulses"] is pulses
    await trio.sleep(5)
    assert await arm.get_position() == reached


@given(st.integers(50, 400), st.integers(0, 5000), st.floats(0, 180))
def test_the_duty_is_one_the_board_can_make(frequency: int, resolution: int, angle: float) -> None:
    config = GpioServoConfig(board="pi", pin="1", frequency_hz=frequency, pwm_resolution=resolution)
    exact = (500 + angle / 180 * 2000) * frequency / 1e6
    duty = config.duty(angle)
    assert 0 <= duty <= 1
    if resolution:
        assert duty * resolution == pytest.approx(round(duty * resolution))
        assert abs(duty - exact) <= 0.5 / resolution + 1e-12
    else:
        assert duty == pytest.approx(exact)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"frequency_hz": 450}, "longer than a period at 450 Hz: use at most 400 Hz"),
        ({"frequency_hz": 20}, "frequency_hz"),
        ({"min_angle_deg": 90, "max_angle_deg": 90}, "min_angle_deg 90 is not below"),
        ({"min_width_us": 2500}, "min_width_us 2500 is not below"),
        ({"starting_position_deg": 200}, "starting_position_deg 200 is not within 0 to 180"),
    ],
)
def test_servos_that_cannot_be(attributes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        decode_attributes(GpioServoConfig, {"board": "pi", "pin": "1", **attributes}, path="attributes")


# ---- switch


async def levels(pi: Any, *pins: str) -> list[bool]:
    return [await pi.get_gpio(pin) for pin in pins]


async def test_one_hot_and_binary(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    pins = ["1", "2", "3"]
    first = await bench.add("switch", "one", {"board": "pi", "pins": pins}, model="rdk:builtin:gpio")
    for position in (0, 2, 1):
        await first.set_position(position)
        assert await levels(pi, *pins) == [index == position for index in range(3)]
        assert await first.get_position() == position
    assert await first.get_number_of_positions() == SwitchPositions(3)
    await bench.remove(first)
    assert await levels(pi, *pins) == [True, False, False]
    bits = {"board": "pi", "pins": pins, "encoding": "binary", "position_count": 6, "active_low": True}
    binary = await bench.add("switch", "bits", bits, model="rdk:builtin:gpio")
    assert await levels(pi, *pins) == [True, True, True]
    await binary.set_position(5)
    assert await levels(pi, *pins) == [False, True, False]
    with pytest.raises(MachineError, match="use 0 to 5"):
        await binary.set_position(6)
    assert (await binary.get_number_of_positions()).number_of_positions == 6


async def test_never_two_positions_at_once(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    pins = ["1", "2", "3"]
    switch = await bench.add("switch", "one", {"board": "pi", "pins": pins}, model="rdk:builtin:gpio")
    most = 0

    class Watch:
        def settle(self, t: float) -> None:
            """Do nothing: there is no state to update."""

        def changed(self, t: float) -> None:
            nonlocal most
            world = bench.world
            most = max(most, sum(world.wiring.signal(world.pin("pi", pin)).level(t) for pin in pins))

    for pin in pins:
        bench.world.pin("pi", pin).watchers.append(Watch())
    for position in (2, 0, 1, 2, 1, 0):
        await switch.set_position(position)
    assert most == 1


async def test_a_switch_that_fails_or_is_interrupted_goes_to_its_safe_position(
    bench: Bench, autojump_clock: MockClock
) -> None:
    pi = await board(bench)
    attributes = {"board": "pi", "pins": ["1", "2"], "safe_position": 1, "labels": ["off", "safe"]}
    switch = await bench.add("switch", "s", attributes, model="rdk:builtin:gpio")
    assert await switch.get_position() == 1
    bench.world.faults.inject("pi", FaultPlan(Fault.BUS, times=1))
    with pytest.raises(HalError):
        await switch.set_position(0)
    assert (await switch.get_position(), await levels(pi, "1", "2")) == (1, [False, True])
    async for completed in cancelled_at_every_step(lambda: switch.set_position(0), lambda: switch.set_position(1)):
        position = await switch.get_position()
        assert await levels(pi, "1", "2") == [position == 0, position == 1]
        assert position == (0 if completed else 1)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"pins": []}, "pins"),
        ({"pins": ["1", "1"]}, "named twice"),
        ({"pins": ["1", "2"], "position_count": 3}, "3 positions on 2 pins: one_hot can encode at most 2"),
        ({"pins": ["1", "2"], "labels": ["a"]}, "1 labels for 2 positions"),
        ({"pins": ["1", "2"], "safe_position": 2}, "safe_position 2 is not below 2"),
    ],
)
def test_switches_that_cannot_be(attributes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        decode_attributes(GpioSwitchConfig, {"board": "pi", **attributes}, path="attributes")


# ---- relay


async def relay(bench: Bench, **attributes: Any) -> Any:
    return await bench.add("switch", "pump", {"board": "pi", "pin": "7", **attributes}, model="rdk:builtin:relay")


@pytest.mark.parametrize("active_low", [False, True])
@pytest.mark.parametrize("safe", [0, 1])
async def test_a_relay_is_safe_first_and_last(
    bench: Bench, autojump_clock: MockClock, active_low: bool, safe: int
) -> None:
    pi = await board(bench)

    async def on() -> bool:
        return (await pi.get_gpio("7")) is not active_low

    pump = await relay(bench, active_low=active_low, safe_position=safe)
    assert await on() is bool(safe)
    assert await pump.get_position() == safe
    await pump.set_position(1 - safe)
    assert await on() is not bool(safe)
    assert await pump.get_number_of_positions() == SwitchPositions(2, ("off", "on"))
    await bench.remove(pump)
    assert await on() is bool(safe)


async def test_a_relay_rests_before_it_changes_again(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    pump = await relay(bench, min_on_s=10, min_off_s=60)
    with pytest.raises(MachineError, match=r"must stay off for another 60\.0 s") as caught:
        await pump.set_position(1)
    assert caught.value.kind is ErrorKind.PRECONDITION
    await trio.sleep(60)
    await pump.set_position(1)
    await trio.sleep(4)
    await pump.set_position(1)  # no change of position, so the minimum time does not restart
    with pytest.raises(MachineError, match=r"must stay on for another 6\.0 s"):
        await pump.set_position(0)
    assert await pi.get_gpio("7")
    assert await pump.get_status() == {"position": "on", "for_s": 4.0, "stays_s": 6.0}
    await trio.sleep(6)
    await pump.set_position(0)
    assert not await pi.get_gpio("7")


async def test_a_relay_that_stops_does_not_wait(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    pump = await relay(bench, min_on_s=1000)
    await pump.set_position(1)
    begin = trio.current_time()
    await bench.remove(pump)
    assert trio.current_time() == begin
    assert not await pi.get_gpio("7")


async def test_a_relay_that_fails_or_is_interrupted_goes_to_its_safe_position(
    bench: Bench, autojump_clock: MockClock
) -> None:
    pi = await board(bench, LateBoard)
    pump = await relay(bench)
    async for completed in cancelled_at_every_step(lambda: pump.set_position(1), lambda: pump.set_position(0)):
        assert await pump.get_position() == int(completed)
        assert await pi.get_gpio("7") is completed
    bench.world.faults.inject("pi", FaultPlan(Fault.BUS, times=1))
    with pytest.raises(HalError):
        await pump.set_position(0)
    assert (await pump.get_position(), await pi.get_gpio("7")) == (0, False)


async def test_a_relay_refuses_invalid_positions(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    pump = await relay(bench)
    for position in (-1, 2):
        with pytest.raises(MachineError, match="use 0 to 1"):
            await pump.set_position(position)
    with pytest.raises(ConfigError, match="safe_position"):
        decode_attributes(RelayConfig, {"board": "pi", "pin": "7", "safe_position": 2}, path="attributes")


# ---- button


async def button(bench: Bench, **attributes: Any) -> Any:
    return await bench.add("button", "bell", {"board": "pi", "pin": "9", **attributes}, model="rdk:builtin:gpio")


@pytest.mark.parametrize("active_low", [False, True])
async def test_a_push_is_a_pulse(bench: Bench, autojump_clock: MockClock, active_low: bool) -> None:
    pi = await board(bench)
    bell = await button(bench, press_ms=250, active_low=active_low)
    assert await pi.get_gpio("9") is active_low
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(bell.push)
        await trio.sleep(0.1)
        assert await pi.get_gpio("9") is not active_low
    assert trio.current_time() - begin == pytest.approx(0.5)
    assert await pi.get_gpio("9") is active_low
    assert await bell.get_status() == {"pushes": 2}


async def test_a_push_cancelled_anywhere_lets_go(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    bell = await button(bench)

    async def nothing() -> None:
        """Do nothing: every attempt starts at rest."""

    async for _ in cancelled_at_every_step(bell.push, nothing):
        assert not await pi.get_gpio("9")


async def test_a_button_that_stops_lets_go(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    bell = await button(bench, active_low=True)
    await bench.remove(bell)
    assert await pi.get_gpio("9")

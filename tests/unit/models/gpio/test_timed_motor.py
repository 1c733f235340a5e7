"""Motor `gpio` without an encoder: power, time, limits, and refused configurations."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from engine.components.motion.motor import MotorProperties, Powered
from hal.errors import Fault, HalError
from hal.sim.faults import FaultPlan
from models.gpio.motor.attributes import GpioMotorConfig
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench
from tests.unit.models.gpio.cancelling import cancelled_at_every_step
from tests.unit.models.gpio.support import Both, board, is_off, plant

AB = {"a": "11", "b": "13"}


async def driven(bench: Bench, *, name: str = "left", **attributes: Any) -> Any:
    full = {"board": "pi", "pins": AB, "max_rpm": 120, **attributes}
    return await bench.add("motor", name, full, model="rdk:builtin:gpio")


@pytest.mark.parametrize("sign", [1, -1])
async def test_go_for_is_a_matter_of_time(bench: Bench, autojump_clock: MockClock, sign: int) -> None:
    await board(bench)
    with plant(bench, AB) as shaft:
        motor = await driven(bench)
        begin = trio.current_time()
        await motor.go_for(60 * sign, 5)
        assert trio.current_time() - begin == pytest.approx(5)
        assert await motor.get_position() == pytest.approx(5 * sign)
        assert shaft.shaft.power == 0
        await trio.sleep(1)
        assert shaft.travel(bench.world.now()) == pytest.approx(5 * sign, abs=0.05)
        assert await motor.get_properties() == MotorProperties(position_reporting=False)


async def test_the_position_is_estimated_from_power_and_time(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    motor = await driven(bench)
    await motor.set_power(0.5)
    await trio.sleep(3)
    assert await motor.get_position() == pytest.approx(3)
    await motor.set_rpm(-30)
    await trio.sleep(2)
    await motor.stop()
    await trio.sleep(10)
    assert await motor.get_position() == pytest.approx(2)
    begin = trio.current_time()
    await motor.go_to(60, 0)
    assert trio.current_time() - begin == pytest.approx(2)
    assert await motor.get_position() == pytest.approx(0)
    await motor.go_to(60, 0)
    assert trio.current_time() - begin == pytest.approx(2)
    await motor.reset_zero_position(3)
    assert await motor.get_position() == -3


async def test_without_max_rpm_only_power_is_possible(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    motor = await driven(bench, max_rpm=0)
    for call in (motor.go_for(60, 1), motor.set_rpm(60), motor.go_to(60, 1)):
        with pytest.raises(MachineError, match="configure max_rpm, or an encoder") as caught:
            await call
        assert caught.value.kind is ErrorKind.PRECONDITION
    await motor.set_power(0.3)
    assert await motor.is_powered() == Powered(is_on=True, power_pct=0.3)
    assert await motor.is_moving()


async def test_power_is_brought_within_its_limits(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    motor = await driven(bench, min_power_pct=0.2, max_power_pct=0.8)
    seen = []
    for power in (0.05, 0.15, 0.5, 1, 7, -0.15, -1):
        await motor.set_power(power)
        seen.append((await motor.is_powered()).power_pct)
    assert seen == [0, 0.2, 0.5, 0.8, 0.8, -0.2, -0.8]
    await motor.stop()
    begin = trio.current_time()
    await motor.go_for(120, 8)  # limited to 96 rpm, so the motion takes longer
    assert trio.current_time() - begin == pytest.approx(5)
    with pytest.raises(MachineError, match="min_power_pct"):
        await motor.go_for(6, 1)
    assert is_off(bench, "11", "13")


async def test_a_speed_above_the_maximum_is_limited_with_a_warning(bench: Bench, autojump_clock: MockClock) -> None:
    with capture_logs() as entries:
        await board(bench)
        motor = await driven(bench)
        await motor.set_rpm(500)
    assert (await motor.is_powered()).power_pct == 1
    assert "speed limited" in str(entries)


async def test_each_form_of_pins_shows_what_the_motor_does(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    forms: dict[str, tuple[dict[str, str], list[float], list[float]]] = {
        "pair": ({"a": "1", "b": "2"}, [0.4, 0], [0, 0.4]),
        "pair and pwm": ({"a": "3", "b": "4", "pwm": "5"}, [1, 0, 0.4], [0, 1, 0.4]),
        "dir and pwm": ({"dir": "6", "pwm": "7"}, [1, 0.4], [0, 0.4]),
        "enables": ({"dir": "8", "pwm": "9", "en_high": "10", "en_low": "12"}, [1, 0.4, 1, 0], [0, 0.4, 1, 0]),
    }
    for name, (pins, forward, backward) in forms.items():
        motor = await driven(bench, name=name, pins=pins, pwm_freq=250)
        assert [await pi.pwm(pin) for pin in pins.values()] == [float(use == "en_low") for use in pins], name
        await motor.set_power(0.4)
        assert [await pi.pwm(pin) for pin in pins.values()] == forward, name
        await motor.set_power(-0.4)
        assert [await pi.pwm(pin) for pin in pins.values()] == backward, name
        assert await pi.pwm_frequency(pins.get("pwm") or pins["b"]) == 250
        await motor.stop()
        off = [await pi.pwm(pin) for use, pin in pins.items() if use != "dir"]
        assert off == [float(use == "en_low") for use in pins if use != "dir"], name
        await bench.remove(motor)


async def test_a_direction_changes_only_without_power(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    motor = await driven(bench, pins={"dir": "11", "pwm": "13"})
    direction, power = bench.world.pin("pi", "11"), bench.world.pin("pi", "13")
    at_change: list[float] = []

    class Watch:
        def settle(self, t: float) -> None:
            at_change.append(bench.world.wiring.signal(power).mean(t))

        def changed(self, t: float) -> None:
            """Do nothing: the test examines the power just before the change."""

    direction.watchers.append(Watch())
    for value in (1, -1, 0.5, -0.5):
        await motor.set_power(value)
    await motor.stop()
    assert at_change == [0, 0, 0, 0]
    assert not await pi.pwm("13")


async def test_set_power_cancelled_anywhere_leaves_it_off(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB) as shaft:
        for pins in (AB, {**AB, "pwm": "15", "en_high": "16"}):
            motor = await driven(bench, pins=pins)
            both = Both(bench, "11", "13")
            for before in (0.0, -0.5):

                async def again(motor: Any = motor, before: float = before) -> None:
                    await motor.set_power(before)

                async for completed in cancelled_at_every_step(lambda: motor.set_power(0.7), again):  # noqa: B023
                    power = (await motor.is_powered()).power_pct
                    assert power == 0.7 if completed else power in (0.0, before)
                    if "pwm" not in pins:
                        assert shaft.shaft.power == power
                    assert is_off(bench, *pins.values()) is (power == 0)
            assert not both.seen
            await bench.remove(motor)


async def test_go_for_cancelled_anywhere_leaves_it_off(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    motor = await driven(bench)
    async for completed in cancelled_at_every_step(lambda: motor.go_for(60, 1), motor.stop):
        assert is_off(bench, "11", "13"), completed
        assert not await motor.is_moving()


async def test_a_newer_command_ends_the_wait_without_cutting_its_own_power(
    bench: Bench, autojump_clock: MockClock
) -> None:
    await board(bench)
    motor = await driven(bench)
    async with trio.open_nursery() as nursery:

        async def old() -> None:
            with pytest.raises(MachineError, match="has replaced"):
                await motor.go_for(60, 100)

        nursery.start_soon(old)
        await trio.sleep(2)
        await motor.set_power(0.25)
    await trio.sleep(10)
    assert (await motor.is_powered()).power_pct == 0.25
    assert await motor.get_position() == pytest.approx(2 + 0.5 * 10)


async def test_a_board_that_fails_between_two_inputs_leaves_both_off(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, {**AB, "pwm": "15"}) as shaft:
        motor = await driven(bench, pins={**AB, "pwm": "15"})
        for count in range(1, 4):
            await motor.set_power(0.5)
            bench.world.faults.inject("pi", FaultPlan(Fault.BUS, times=count))
            with pytest.raises(HalError):
                await motor.set_power(-0.5)
            bench.world.faults.clear("pi")
            await motor.stop()
            assert shaft.shaft.power == 0


async def test_two_motors_on_one_pin_are_refused_with_both_names(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    await driven(bench)
    with pytest.raises(HalError, match=r"motor/right.*motor/left"):
        await driven(bench, name="right", pins={"a": "12", "b": "13"})
    await driven(bench, name="right", pins={"a": "12", "b": "14"})  # the failed motor did not reserve pin 12


async def test_a_removed_motor_leaves_its_pins_off(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    motor = await driven(bench, pins={**AB, "pwm": "15", "en_high": "16"})
    await motor.set_power(1)
    await bench.remove(motor)
    assert is_off(bench, "11", "13", "15", "16")


async def test_it_is_unpowered_at_start_whatever_the_pins_were(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    for pin in ("11", "13"):
        await pi.set_gpio(pin, True)
    await driven(bench)
    assert is_off(bench, "11", "13")


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"pins": {"a": "1"}}, "use a and b"),
        ({"pins": {"a": "1", "dir": "2"}}, "use a and b"),
        ({"pins": {"a": "1", "b": "1"}}, "named twice"),
        ({"pins": AB, "encoder": "e"}, "ticks_per_rotation must be given"),
        ({"pins": AB, "min_power_pct": 0.5, "max_power_pct": 0.4}, "0.5 is above max_power_pct 0.4"),
        ({"pins": AB, "ramp_rate": 0}, "ramp_rate"),
        ({"pins": AB, "control_parameters": {"p": -1}}, r"control_parameters\.p"),
        ({"pins": {"a": "1", "b": "2", "pwm": "3", "dir": "4"}}, "use a and b"),
    ],
)
def test_configurations_that_cannot_be_right(attributes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        decode_attributes(GpioMotorConfig, {"board": "pi", **attributes}, path="attributes")

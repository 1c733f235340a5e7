"""Motors, their pins, encoders and bases."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from engine.components.motion.motor import MotorProperties, Powered
from engine.components.sensing.encoder import PositionType
from engine.resource import Unsupported
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from schema.space.geometry import Vector3
from tests.unit.models.builtin.support import Bench

PINS = {"a": "11", "b": "13", "pwm": "15"}


async def driven(bench: Bench, **attributes: Any) -> tuple[Any, Any, Any]:
    board = await bench.add("board", "pi")
    encoder = await bench.add("encoder", "enc", {"board": "pi", "pins": {"a": "35", "b": "37"}})
    motor = await bench.add(
        "motor",
        "left",
        {"board": "pi", "pins": PINS, "encoder": "enc", "ticks_per_rotation": 200, "max_rpm": 120, **attributes},
    )
    return board, encoder, motor


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("flip", [False, True])
async def test_go_for_turns_exactly_and_takes_its_time(
    bench: Bench, autojump_clock: MockClock, sign: int, flip: bool
) -> None:
    _, encoder, motor = await driven(bench, dir_flip=flip)
    begin = trio.current_time()
    await motor.go_for(60 * sign, 10)
    assert 10 <= trio.current_time() - begin < 11
    assert await motor.get_position() == pytest.approx(10 * sign)
    sense = -sign if flip else sign
    assert (await encoder.get_position()).value == 2000 * sense
    assert (await encoder.get_position(PositionType.ANGLE_DEGREES)).value == pytest.approx(3600 * sense)
    assert not await motor.is_moving()
    assert await motor.is_powered() == Powered(is_on=False, power_pct=0.0)


async def test_the_pins_show_what_the_motor_does(bench: Bench, autojump_clock: MockClock) -> None:
    board, _, motor = await driven(bench)
    await motor.set_power(0.4)
    assert await board.get_gpio("11")
    assert not await board.get_gpio("13")
    assert await board.pwm("15") == pytest.approx(0.4)
    assert await motor.is_powered() == Powered(is_on=True, power_pct=0.4)
    await motor.set_power(-0.2)
    assert not await board.get_gpio("11")
    assert await board.get_gpio("13")
    await motor.stop()
    assert await board.pwm("15") == 0
    assert not await board.get_gpio("13")


async def test_setting_the_pins_drives_the_motor(bench: Bench, autojump_clock: MockClock) -> None:
    board, _, motor = await driven(bench)
    await board.set_gpio("11", True)
    await board.set_pwm("15", 0.5)
    await trio.sleep(10)
    assert await motor.is_moving()
    assert await motor.get_position() == pytest.approx(10, abs=0.1)
    await board.set_gpio("11", False)
    await trio.sleep(1)
    assert not await motor.is_moving()


async def test_go_to_is_absolute_and_counts_from_zero(bench: Bench, autojump_clock: MockClock) -> None:
    _, _, motor = await driven(bench)
    await motor.go_to(-60, 3)
    assert await motor.get_position() == pytest.approx(3)
    await motor.reset_zero_position(0)
    assert await motor.get_position() == 0
    await motor.go_to(60, -1)
    assert await motor.get_position() == pytest.approx(-1)
    await motor.reset_zero_position(2)
    assert await motor.get_position() == pytest.approx(-2)
    await motor.go_to(60, -2)
    assert await motor.get_position() == pytest.approx(-2)


async def test_a_newer_command_wins_and_the_older_call_says_so(bench: Bench, autojump_clock: MockClock) -> None:
    _, _, motor = await driven(bench)
    async with trio.open_nursery() as nursery:

        async def old() -> None:
            with pytest.raises(MachineError, match="has replaced") as caught:
                await motor.go_for(60, 100)
            assert caught.value.kind is ErrorKind.CANCELLED

        nursery.start_soon(old)
        await trio.sleep(2)
        await motor.set_rpm(-60)
    await trio.sleep(1)
    assert (await motor.is_powered()).power_pct == pytest.approx(-0.5)
    before = await motor.get_position()
    await trio.sleep(2)
    assert await motor.get_position() == pytest.approx(before - 2, abs=0.02)


async def test_the_same_power_again_still_forgets_the_plan(bench: Bench, autojump_clock: MockClock) -> None:
    _, _, motor = await driven(bench)
    async with trio.open_nursery() as nursery:

        async def old() -> None:
            with pytest.raises(MachineError, match="has replaced"):
                await motor.go_for(60, 5)

        nursery.start_soon(old)
        await trio.sleep(1)
        await motor.set_rpm(60)
    await trio.sleep(60)
    assert await motor.get_position() > 50


async def test_cancelling_stops_the_motor_and_its_pins(bench: Bench, autojump_clock: MockClock) -> None:
    board, _, motor = await driven(bench)
    with trio.move_on_after(3):
        await motor.go_for(60, 100)
    assert await board.pwm("15") == 0
    await trio.sleep(1)
    position = await motor.get_position()
    assert 2.8 < position < 3.2
    await trio.sleep(60)
    assert await motor.get_position() == position


async def test_a_removed_motor_leaves_its_pins_low(bench: Bench, autojump_clock: MockClock) -> None:
    board, encoder, motor = await driven(bench)
    await motor.set_power(1)
    await trio.sleep(1)
    await bench.remove(motor)
    assert await board.pwm("15") == 0
    assert not await board.get_gpio("11")
    ticks = (await encoder.get_position()).value
    await trio.sleep(10)
    assert (await encoder.get_position()).value == ticks > 0
    with pytest.raises(Unsupported):
        await encoder.get_position(PositionType.ANGLE_DEGREES)


@pytest.mark.parametrize(
    ("method", "arguments", "words"),
    [
        ("go_for", (0.0, 1.0), "nearly 0"),
        ("go_for", (60.0, 0.0), "0 revolutions"),
        ("go_to", (0.05, 1.0), "nearly 0"),
        ("set_rpm", (0.0,), "nearly 0"),
        ("set_power", (float("nan"),), "nan"),
        ("go_for", (float("inf"), 1.0), "inf"),
    ],
)
async def test_impossible_commands_are_refused(
    bench: Bench, autojump_clock: MockClock, method: str, arguments: tuple[float, ...], words: str
) -> None:
    motor = await bench.add("motor")
    with pytest.raises(MachineError, match=words) as caught:
        await getattr(motor, method)(*arguments)
    assert caught.value.kind is ErrorKind.INVALID
    assert not await motor.is_moving()


async def test_power_is_kept_within_the_limits(bench: Bench, autojump_clock: MockClock) -> None:
    motor = await bench.add("motor", "m", {"min_power_pct": 0.2, "max_power_pct": 0.6})
    for asked, text in ((0.1, 0.2), (-0.1, -0.2), (0.4, 0.4), (5.0, 0.6), (-1.0, -0.6), (0.0, 0.0)):
        await motor.set_power(asked)
        assert (await motor.is_powered()).power_pct == text
    assert await motor.get_properties() == MotorProperties(position_reporting=True)


@pytest.mark.parametrize(
    "attributes",
    [{"encoder": "e"}, {"min_power_pct": 0.9, "max_power_pct": 0.5}, {"max_rpm": "fast"}],
)
def test_wrong_attributes_are_refused_by_name(attributes: dict[str, Any]) -> None:
    from models.fake.motor.attributes import FakeMotorConfig

    with pytest.raises(ConfigError, match=r"ticks_per_rotation|board|min_power_pct|max_rpm"):
        decode_attributes(FakeMotorConfig, attributes, path="attributes")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(5, 120)), min_size=1, max_size=5))
def test_ticks_are_revolutions_times_ticks(moves: list[tuple[float, float]]) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            bench = Bench(nursery)
            _, encoder, motor = await driven(bench)
            for position, rpm in moves:
                await motor.go_to(rpm, position)
                assert (await encoder.get_position()).value == pytest.approx(position * 200, abs=1)
                assert await motor.get_position() == pytest.approx(position, abs=1 / 200)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=MockClock(autojump_threshold=0))


async def test_an_encoder_starts_again_from_zero(bench: Bench, autojump_clock: MockClock) -> None:
    _, encoder, motor = await driven(bench)
    await motor.go_for(60, 2)
    await encoder.reset_position()
    assert (await encoder.get_position()).value == 0
    await motor.go_for(60, 1)
    assert (await encoder.get_position()).value == 200


async def test_a_working_motor_shows_in_the_supply(bench: Bench, autojump_clock: MockClock) -> None:
    supply = await bench.add("power_sensor", "supply")
    motor = await bench.add("motor", "m")
    idle = await supply.get_readings()
    await motor.set_power(1)
    load = await supply.get_readings()
    assert load["volts"] < idle["volts"]
    assert load["amps"] > idle["amps"] + 1
    assert load["watts"] == pytest.approx(load["volts"] * load["amps"])


async def test_a_base_drives_and_turns_exactly(bench: Bench, autojump_clock: MockClock) -> None:
    base = await bench.add("base", "rover", {"width_mm": 300, "wheel_circumference_mm": 200})
    compass = await bench.add("movement_sensor", "compass", {"base": "rover"})
    await base.move_straight(1000, 200)
    await base.spin(90, 45)
    await base.move_straight(-500, 200)
    status = await base.get_status()
    assert status == pytest.approx({"x_mm": 500, "y_mm": 1000, "heading_deg": 90}, abs=1e-3)
    assert await compass.get_compass_heading() == pytest.approx(270, abs=1e-3)
    position = await compass.get_position()
    assert position.coordinate.latitude == pytest.approx(40.7 + 1 / 111320)
    assert not await base.is_moving()


async def test_a_base_keeps_its_velocity_until_the_next_command(bench: Bench, autojump_clock: MockClock) -> None:
    base = await bench.add("base", "rover")
    sensor = await bench.add("movement_sensor", "s", {"base": "rover"})
    await base.set_velocity(Vector3(0, 300, 0), Vector3(0, 0, 20))
    await trio.sleep(5)
    assert (await sensor.get_linear_velocity()).y == pytest.approx(0.3)
    assert (await sensor.get_angular_velocity()).z == pytest.approx(20)
    assert await base.is_moving()
    await base.set_power(Vector3(0, 1, 0), Vector3(0, 0, 1))  # one wheel stands still
    await trio.sleep(5)
    assert await base.is_moving()
    await base.stop()
    await trio.sleep(1)
    assert not await base.is_moving()


async def test_a_base_of_configured_motors_drives_their_pins(bench: Bench, autojump_clock: MockClock) -> None:
    board = await bench.add("board", "pi")
    for name, pins in (("l", {"a": "1", "b": "2"}), ("r", {"dir": "3", "pwm": "4"})):
        await bench.add("motor", name, {"board": "pi", "pins": pins, "max_rpm": 200})
    base = await bench.add("base", "rover", {"left": ["l"], "right": ["r"]})
    await base.set_power(Vector3(0, 0.5, 0), Vector3())
    assert await board.pwm("1") == await board.pwm("4") == 0.5
    await bench.remove(base)
    assert await board.pwm("1") == await board.pwm("4") == 0


async def test_a_base_refuses_to_stand_still_by_moving(bench: Bench, autojump_clock: MockClock) -> None:
    base = await bench.add("base", "rover")
    with pytest.raises(MachineError, match="stop"):
        await base.move_straight(0, 100)
    with pytest.raises(MachineError, match="stop"):
        await base.spin(90, 0)
    with pytest.raises(MachineError, match="nearly 0"):  # the motor's own error, not in an exception group
        await base.move_straight(100, 0.1)


@pytest.mark.parametrize("counted", [True, False])
async def test_a_stopped_motor_does_not_move_any_more(bench: Bench, autojump_clock: MockClock, counted: bool) -> None:
    motor = (await driven(bench))[2] if counted else await bench.add("motor", "m", {"max_rpm": 120})
    await motor.set_power(1)
    await trio.sleep(1)
    await motor.stop()
    assert not await motor.is_moving()
    await motor.reset_zero_position(0.0)
    assert await motor.get_position() == 0.0
    await trio.sleep(1)
    assert await motor.get_position() == 0.0

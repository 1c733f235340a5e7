"""Motor `gpio` with an encoder, on pins that turn a simulated shaft."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from engine.components.motion.motor import MotorProperties, Powered
from hal.errors import Fault, HalError
from hal.sim.bench.encoder import SimEncoder
from hal.sim.faults import FaultPlan
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench
from tests.unit.models.gpio.support import TICKS, Both, board, is_off, plant

AB = {"a": "11", "b": "13"}
TICK = 1.01 / TICKS
WIRINGS = {
    "a and b": (AB, {"a": "11", "b": "13"}),
    "a, b and pwm": ({"a": "11", "b": "13", "pwm": "15"}, {"a": "11", "b": "13", "pwm": "15"}),
    "dir and pwm": ({"dir": "11", "pwm": "13"}, {"direction": "11", "pwm": "13"}),
}


async def driven(bench: Bench, *, pins: dict[str, str] = AB, encoder: str = "incremental", **attributes: Any) -> Any:
    tracks = {"a": "enc-a", "b": "enc-b"} if encoder == "incremental" else {"i": "enc-a"}
    await bench.add("encoder", "enc", {"board": "pi", "pins": tracks}, model=f"rdk:builtin:{encoder}")
    full = {"board": "pi", "pins": pins, "encoder": "enc", "ticks_per_rotation": TICKS, "max_rpm": 120, **attributes}
    return await bench.add("motor", "left", full, model="rdk:builtin:gpio")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("wiring", WIRINGS)
async def test_go_for_turns_exactly(
    bench: Bench, autojump_clock: MockClock, sign: int, flip: bool, wiring: str
) -> None:
    await board(bench)
    pins, wires = WIRINGS[wiring]
    with plant(bench, wires) as shaft:
        motor = await driven(bench, pins=pins, dir_flip=flip)
        begin = trio.current_time()
        await motor.go_for(60 * sign, 5)
        took = trio.current_time() - begin
        await trio.sleep(1)
        assert shaft.travel(bench.world.now()) == pytest.approx(5 * sign * (-1 if flip else 1), abs=2 * TICK)
        assert await motor.get_position() == pytest.approx(5 * sign, abs=TICK)
        assert 5.5 <= took < 7
        assert shaft.shaft.power == 0
        assert not await motor.is_moving()
        assert await motor.is_powered() == Powered(is_on=False, power_pct=0.0)


async def test_go_to_is_absolute_and_counts_from_zero(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB):
        motor = await driven(bench)
        await motor.go_to(-60, 3)
        assert await motor.get_position() == pytest.approx(3, abs=TICK)
        await motor.reset_zero_position(0)
        assert await motor.get_position() == 0
        await motor.go_to(60, -1)
        assert await motor.get_position() == pytest.approx(-1, abs=TICK)
        await motor.reset_zero_position(2)
        assert await motor.get_position() == -2
        await motor.go_to(60, -2)
        assert await motor.get_position() == -2
        assert await motor.get_properties() == MotorProperties(position_reporting=True)


async def test_many_small_ways_add_up(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB):
        motor = await driven(bench)
        for count in range(1, 11):
            await motor.go_to(60, count * 0.1)
            assert await motor.get_position() == pytest.approx(count * 0.1, abs=TICK)


@pytest.mark.parametrize("rpm", [5, 60, -90])
async def test_a_speed_is_kept_until_the_next_command(bench: Bench, autojump_clock: MockClock, rpm: float) -> None:
    await board(bench)
    with plant(bench, AB):
        motor = await driven(bench)
        await motor.set_rpm(rpm)
        assert await motor.is_moving()
        await trio.sleep(5)
        before = await motor.get_position()
        await trio.sleep(10)
        assert await motor.get_position() - before == pytest.approx(rpm / 6, abs=0.03)
        await motor.stop()
        assert is_off(bench, "11", "13")
        assert not await motor.is_moving()
        await trio.sleep(1)
        rest = await motor.get_position()
        await trio.sleep(10)
        assert await motor.get_position() == rest


async def test_the_speed_is_right_although_max_rpm_is_wrong(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB, max_rpm=150):
        motor = await driven(bench, max_rpm=100)
        await motor.set_rpm(80)
        await trio.sleep(5)
        before = await motor.get_position()
        await trio.sleep(6)
        assert await motor.get_position() - before == pytest.approx(8, abs=0.05)


async def test_the_ramp_is_kept(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB) as shaft:
        motor = await driven(bench, ramp_rate=0.01)  # 120 rpm in 5 s
        await motor.set_rpm(120)
        for second in (1, 2, 3, 4):
            await trio.sleep(1)
            assert shaft.shaft.speed(bench.world.now()) == pytest.approx(0.4 * second, abs=0.15)


async def test_a_new_speed_while_turning_does_not_cut_the_power(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB) as shaft:
        motor = await driven(bench)
        await motor.set_rpm(60)
        await trio.sleep(4)
        lowest = 1000.0
        for rpm in (62, 64, 66, 68, 70):
            await motor.set_rpm(rpm)
            for _ in range(20):
                await trio.sleep(0.01)
                lowest = min(lowest, shaft.shaft.speed(bench.world.now()) * 60)
        assert lowest > 55


async def test_a_newer_command_wins_and_the_older_call_says_so(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB):
        motor = await driven(bench)
        async with trio.open_nursery() as nursery:

            async def old() -> None:
                with pytest.raises(MachineError, match="has replaced") as caught:
                    await motor.go_for(60, 100)
                assert caught.value.kind is ErrorKind.CANCELLED

            nursery.start_soon(old)
            await trio.sleep(2)
            await motor.set_rpm(-60)
        await trio.sleep(5)
        before = await motor.get_position()
        await trio.sleep(2)
        assert await motor.get_position() == pytest.approx(before - 2, abs=0.05)


NEWER: dict[str, Callable[[Any], Awaitable[None]]] = {
    "stop": lambda motor: motor.stop(),
    "set_power": lambda motor: motor.set_power(-0.25),
    "set_rpm": lambda motor: motor.set_rpm(-30),
    "go_to": lambda motor: motor.go_to(60, 0),
}


@pytest.mark.parametrize("newer", NEWER)
async def test_each_command_ends_an_older_way(bench: Bench, autojump_clock: MockClock, newer: str) -> None:
    await board(bench)
    with plant(bench, AB):
        motor = await driven(bench)
        ended = trio.Event()
        async with trio.open_nursery() as nursery:

            async def old() -> None:
                with pytest.raises(MachineError, match="has replaced"):
                    await motor.go_for(60, 100)
                ended.set()

            nursery.start_soon(old)
            await trio.sleep(2)
            await NEWER[newer](motor)
            await ended.wait()
        await trio.sleep(1)
        power = (await motor.is_powered()).power_pct
        assert {"stop": power == 0, "set_power": power == -0.25, "set_rpm": power < 0, "go_to": power == 0}[newer]


async def test_commands_at_the_same_moment_are_obeyed_in_order(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB):
        motor = await driven(bench)
        for _ in range(20):
            await motor.set_rpm(60)
            await trio.sleep(0.1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(motor.set_power, 0.5)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(motor.stop)
            assert is_off(bench, "11", "13")
            assert not await motor.is_moving()


async def test_power_set_right_after_a_speed_stays(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB):
        motor = await driven(bench)
        for _ in range(10):
            await motor.set_rpm(60)
            await motor.set_power(0.5)
            await trio.sleep(1)
            assert (await motor.is_powered()).power_pct == 0.5


async def test_cancelling_takes_the_power_away(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB):
        motor = await driven(bench)
        with trio.move_on_after(3):
            await motor.go_for(60, 100)
        assert is_off(bench, "11", "13")
        assert not await motor.is_moving()
        assert 2 < await motor.get_position() < 3
        await motor.go_to(60, 0)
        assert await motor.get_position() == pytest.approx(0, abs=TICK)


@pytest.mark.parametrize("wiring", WIRINGS)
async def test_a_removed_motor_leaves_its_pins_off(bench: Bench, autojump_clock: MockClock, wiring: str) -> None:
    await board(bench)
    pins, wires = WIRINGS[wiring]
    with plant(bench, wires) as shaft:
        motor = await driven(bench, pins={**pins, "en_high": "16", "en_low": "18"})
        await motor.set_rpm(100)
        await trio.sleep(2)
        assert shaft.shaft.power > 0
        assert not is_off(bench, "16")
        assert is_off(bench, "18")
        await bench.remove(motor)
        assert shaft.shaft.power == 0
        assert is_off(bench, *(pin for name, pin in pins.items() if name != "dir"), "16")
        assert not is_off(bench, "18")


@pytest.mark.parametrize("wiring", ["a and b", "a, b and pwm"])
async def test_the_inputs_are_never_high_together(bench: Bench, autojump_clock: MockClock, wiring: str) -> None:
    await board(bench)
    pins, wires = WIRINGS[wiring]
    with plant(bench, wires):
        motor = await driven(bench, pins=pins)
        both = Both(bench, "11", "13")
        for rpm in (110, -110, 60, -30):
            await motor.set_rpm(rpm)
            await trio.sleep(2)
        for power in (1, -1, 0.5, -0.5):
            await motor.set_power(power)
        await motor.stop()
        assert not both.seen


async def test_a_failing_board_leaves_the_motor_off(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB) as shaft:
        motor = await driven(bench)
        async with trio.open_nursery() as nursery:

            async def turn() -> None:
                with pytest.raises(HalError, match="injected"):
                    await motor.go_for(60, 100)

            nursery.start_soon(turn)
            await trio.sleep(2)
            # One access fails, then the board recovers: the power must be off, not restored.
            bench.world.faults.inject("pi", FaultPlan(Fault.BUS, times=1))
        assert shaft.shaft.power == 0
        assert not await motor.is_moving()
        await motor.go_for(60, 1)


async def test_a_board_that_stays_broken_fails_calls_and_the_motor_works_afterwards(
    bench: Bench, autojump_clock: MockClock
) -> None:
    await board(bench)
    with plant(bench, AB) as shaft:
        motor = await driven(bench)
        await motor.set_rpm(60)
        await trio.sleep(2)
        with bench.world.faults.injected("pi", FaultPlan(Fault.GONE)):
            await trio.sleep(1)
            assert (await motor.is_powered()).is_on, "the output could not be switched off"
            for call in (motor.stop(), motor.set_power(0.5)):
                with pytest.raises(HalError):
                    await call
        await motor.stop()
        assert shaft.shaft.power == 0
        await motor.go_for(60, 1)


async def test_a_blocked_shaft_stops_the_motor_with_a_reason(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    motor = await driven(bench, stall_s=1.5)  # nothing is connected to the pins: there will be no tick
    begin = trio.current_time()
    with pytest.raises(MachineError, match=r"no tick of rdk:component:encoder/enc in .* s at full power") as caught:
        await motor.go_for(60, 1)
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert 1.5 < trio.current_time() - begin < 4
    assert is_off(bench, "11", "13")


async def test_an_encoder_wired_backwards_stops_the_motor_with_a_remedy(
    bench: Bench, autojump_clock: MockClock
) -> None:
    await board(bench)
    with plant(bench, AB, reverse=True) as shaft:
        motor = await driven(bench)
        with pytest.raises(MachineError, match="swap pins a and b") as caught:
            await motor.go_for(60, 20)
        assert caught.value.kind is ErrorKind.PRECONDITION
        assert shaft.shaft.power == 0


async def test_a_stalled_speed_stops_and_says_so_in_the_log(bench: Bench, autojump_clock: MockClock) -> None:
    with capture_logs() as entries:
        await board(bench)
        motor = await driven(bench)
        await motor.set_rpm(60)
        await trio.sleep(10)
    assert not await motor.is_moving()
    assert is_off(bench, "11", "13")
    assert "no tick of" in str(entries)


async def test_an_encoder_that_goes_away_stops_the_motor(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    await bench.add("encoder", "enc", {"board": "pi", "pins": {"a": "35", "b": "37"}})
    encoder = bench.world.find(SimEncoder, "enc")
    assert encoder is not None
    with plant(bench, AB) as shaft:
        encoder.attach(shaft.shaft, TICKS, bench.world.now())
        attributes = {"board": "pi", "pins": AB, "encoder": "enc", "ticks_per_rotation": TICKS, "max_rpm": 120}
        motor = await bench.add("motor", "left", attributes, model="rdk:builtin:gpio")
        async with trio.open_nursery() as nursery:

            async def turn() -> None:
                with pytest.raises(HalError, match="enc: gone"):
                    await motor.go_for(60, 100)

            nursery.start_soon(turn)
            await trio.sleep(2)
            assert await motor.get_position() > 1
            bench.world.faults.inject("enc", FaultPlan(Fault.GONE))
        assert shaft.shaft.power == 0


async def test_a_single_track_takes_its_direction_from_the_motor(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    with plant(bench, AB):
        motor = await driven(bench, encoder="single", ticks_per_rotation=TICKS // 4)
        await motor.go_for(60, 3)
        await motor.go_for(-60, 5)
        assert await motor.get_position() == pytest.approx(-2, abs=0.1)
        await motor.go_to(60, 0)
        assert await motor.get_position() == pytest.approx(0, abs=0.1)


async def test_invalid_speeds_and_powers_are_refused(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    motor = await driven(bench)
    nan = float("nan")
    for call in (
        motor.set_rpm(0.05),
        motor.set_rpm(nan),
        motor.go_for(0, 1),
        motor.go_for(60, 0),
        motor.go_for(60, nan),
        motor.go_to(60, nan),
        motor.set_power(nan),
        motor.reset_zero_position(nan),
    ):
        with pytest.raises(MachineError) as caught:
            await call
        assert caught.value.kind is ErrorKind.INVALID
    assert is_off(bench, "11", "13")

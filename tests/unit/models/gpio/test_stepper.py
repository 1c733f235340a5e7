"""Motor `gpiostepper`: the test counts the steps on its pin."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from engine.components.motion.motor import MotorProperties, Powered
from hal.errors import Fault, HalError
from hal.sim.faults import FaultPlan
from models.fake.board.model import FakeBoard
from models.gpio.stepper.attributes import MAX_STEP_RATE, GpioStepperConfig
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench
from tests.unit.models.gpio.cancelling import cancelled_at_every_step
from tests.unit.models.gpio.support import LateBoard, board, is_off

PINS = {"step": "11", "dir": "13", "en_low": "15", "en_high": "16"}


class Rotor:
    """A simulated stepper on the driver chip: it turns one step on each rising edge while the chip is enabled."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.position = 0
        self.times: list[float] = []
        self._before = False
        bench.world.pin("pi", PINS["step"]).watchers.append(self)

    def _level(self, pin: str) -> bool:
        world = self._bench.world
        return world.wiring.signal(world.pin("pi", PINS[pin])).level(world.now())

    def enabled(self) -> bool:
        return self._level("en_high") and not self._level("en_low")

    def settle(self, t: float) -> None:
        """Do nothing: there is no state to update."""

    def changed(self, t: float) -> None:
        """Count a step on each rising edge."""
        level = self._level("step")
        if level and not self._before:
            assert self.enabled(), "a step without power is lost"
            self.position += 1 if self._level("dir") else -1
            self.times.append(t)
        self._before = level

    def fastest(self) -> float:
        """Return the highest step rate, from the two closest steps."""
        return 1 / min(b - a for a, b in itertools.pairwise(self.times))


async def stepper(bench: Bench, *, late: bool = False, **attributes: Any) -> tuple[Any, Rotor]:
    await board(bench, LateBoard if late else FakeBoard)
    full = {"board": "pi", "pins": PINS, "ticks_per_rotation": 200, "max_rpm": 300, **attributes}
    motor = await bench.add("motor", "z", full, model="rdk:builtin:gpiostepper")
    return motor, Rotor(bench)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("acceleration", [0, 60, 600])
async def test_go_for_makes_exactly_the_steps(
    bench: Bench, autojump_clock: MockClock, sign: int, acceleration: float
) -> None:
    motor, rotor = await stepper(bench, acceleration_rpm_per_s=acceleration)
    begin = trio.current_time()
    await motor.go_for(120 * sign, 3.5)
    assert rotor.position == 700 * sign
    assert await motor.get_position() == 3.5 * sign
    assert rotor.fastest() <= 400 * 1.3
    ramp = 120 / acceleration if acceleration else 0
    ideal = 3.5 / 2 + ramp if ramp * 2 <= 3.5 else 2 * math.sqrt(3.5 / (acceleration / 60))
    assert trio.current_time() - begin == pytest.approx(ideal, abs=0.1)
    assert is_off(bench, "11", "16")
    assert not rotor.enabled()
    assert not await motor.is_moving()


async def test_steps_are_even_at_full_speed(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench, acceleration_rpm_per_s=1000)
    await motor.go_for(90, 3)
    middle = rotor.times[200:400]
    gaps = [b - a for a, b in itertools.pairwise(middle)]
    assert max(gaps) == pytest.approx(min(gaps))
    assert gaps[0] == pytest.approx(1 / 300)


async def test_go_to_and_zero_are_exact_to_the_step(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench, microsteps=4, max_rpm=150)
    await motor.go_to(-60, 1.25)
    assert (rotor.position, await motor.get_position()) == (1000, 1.25)
    await motor.reset_zero_position(0)
    assert await motor.get_position() == 0
    await motor.go_to(60, -0.5)
    assert (rotor.position, await motor.get_position()) == (600, -0.5)
    await motor.reset_zero_position(2)
    await motor.go_to(60, -2)
    assert (rotor.position, await motor.get_position()) == (600, -2)
    assert await motor.get_properties() == MotorProperties(position_reporting=True)


@settings(max_examples=8)
@given(st.floats(0.2, 6), st.floats(5, 300))
def test_cancelled_at_any_time_the_count_is_what_the_rotor_did(seconds: float, rpm: float) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            bench = Bench(nursery)
            motor, rotor = await stepper(bench)
            with trio.move_on_after(seconds):
                await motor.go_for(rpm, 50)
            assert not await motor.is_moving()
            assert not rotor.enabled()
            assert await motor.get_position() == rotor.position / 200
            await motor.go_to(rpm, 0)
            assert rotor.position == 0
            nursery.cancel_scope.cancel()

    trio.run(main, clock=MockClock(autojump_threshold=0), strict_exception_groups=True)


async def test_cancelled_at_every_step_of_the_loop_nothing_moves_on(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench, acceleration_rpm_per_s=6000)
    async for _ in cancelled_at_every_step(lambda: motor.go_for(120, 0.02), motor.stop):
        assert await motor.get_position() == rotor.position / 200
        assert is_off(bench, "11", "16")
        assert not await motor.is_moving()


async def test_a_stop_brakes_and_loses_nothing(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench, acceleration_rpm_per_s=300)
    await motor.set_rpm(300)
    await trio.sleep(2)
    begin = trio.current_time()
    count = rotor.position
    await motor.stop()
    assert 0.5 < trio.current_time() - begin < 1.1
    braking = rotor.position - count
    assert 350 < braking < 650  # the distance of half a second at 1000 steps per second
    assert await motor.get_position() == rotor.position / 200
    assert not rotor.enabled()


async def test_a_gentle_acceleration_does_not_make_stopping_long(bench: Bench, autojump_clock: MockClock) -> None:
    motor, _ = await stepper(bench, acceleration_rpm_per_s=10)
    await motor.set_rpm(60)
    await trio.sleep(7)
    begin = trio.current_time()
    await motor.stop()
    assert trio.current_time() - begin < 1.2


async def test_a_speed_is_kept_and_changed_within_the_acceleration(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench, acceleration_rpm_per_s=120)
    await motor.set_rpm(60)
    await trio.sleep(2)
    assert (await motor.is_powered()).is_on
    assert (await motor.is_powered()).power_pct == pytest.approx(0.2)
    before = rotor.position
    await trio.sleep(3)
    assert rotor.position - before == pytest.approx(600, abs=2)
    await motor.set_rpm(-60)
    await trio.sleep(0.4)
    assert rotor.position > before + 600  # still braking
    await trio.sleep(3)
    before = rotor.position
    await trio.sleep(1)
    assert rotor.position - before == pytest.approx(-200, abs=2)
    await motor.set_power(0)
    assert await motor.is_powered() == Powered(is_on=False, power_pct=0.0)


async def test_a_newer_way_while_turning_needs_no_stop(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench)
    async with trio.open_nursery() as nursery:

        async def old() -> None:
            with pytest.raises(MachineError, match="has replaced") as caught:
                await motor.go_for(120, 100)
            assert caught.value.kind is ErrorKind.CANCELLED

        nursery.start_soon(old)
        await trio.sleep(1.5)
        await motor.go_to(60, 0.1)
    assert rotor.position == 20
    assert await motor.get_position() == 0.1


async def test_a_stopped_stepper_holds_if_configured(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench, idle="hold")
    assert not rotor.enabled(), "without power until the first command"
    await motor.go_for(60, 0.1)
    assert rotor.enabled()
    assert await motor.is_powered() == Powered(is_on=True, power_pct=0.0)
    await motor.stop()
    assert rotor.enabled()
    await bench.remove(motor)
    assert not rotor.enabled()


async def test_a_board_that_fails_stops_it_and_the_count_stays_right(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench)
    async with trio.open_nursery() as nursery:

        async def turn() -> None:
            with pytest.raises(HalError, match="injected"):
                await motor.go_for(120, 100)

        nursery.start_soon(turn)
        await trio.sleep(2)
        bench.world.faults.inject("pi", FaultPlan(Fault.BUS, times=1))
    assert not rotor.enabled()
    assert is_off(bench, "11")
    assert await motor.get_position() == rotor.position / 200
    await motor.go_to(120, 0)
    assert rotor.position == 0


async def test_a_slow_board_turns_slower_but_exactly(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench)
    with bench.world.faults.injected("pi", FaultPlan(delay=0.01)):
        await motor.go_for(300, 1)
    assert rotor.position == 200
    assert rotor.fastest() <= 101
    assert (await motor.get_status())["lost_beats"] > 100


async def test_a_moment_of_lateness_is_not_made_up_for(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(motor.go_for, 60, 2)
        await trio.sleep(1)
        with bench.world.faults.injected("pi", FaultPlan(delay=0.3)):
            await trio.sleep(0.1)
    assert rotor.position == 400
    assert rotor.fastest() <= 200 * 8 / 7 * 1.01, "more than one of eight beats too early"
    assert (await motor.get_status())["lost_beats"] > 10


async def test_a_computer_that_was_away_makes_up_for_nothing(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(motor.go_for, 60, 2)
        await trio.sleep(1)
        autojump_clock.jump(0.5)
    assert rotor.position == 400
    assert rotor.fastest() <= 200 * 8 / 7 * 1.01


async def test_a_slow_board_costs_its_own_time_and_no_more(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench, acceleration_rpm_per_s=0)
    begin = trio.current_time()
    with bench.world.faults.injected("pi", FaultPlan(delay=0.001)):  # two calls per step at 400 steps per second
        await motor.go_for(120, 2)
    assert 1 < trio.current_time() - begin < 1.35
    assert rotor.position == 400


async def test_a_stop_that_is_cancelled_too_counts_every_step(bench: Bench, autojump_clock: MockClock) -> None:
    """The board answers after the line has changed, as a board behind a bus does."""
    motor, rotor = await stepper(bench, late=True)

    async def turn() -> None:
        await motor.set_rpm(300)
        await trio.sleep(0.5)

    async for _ in cancelled_at_every_step(motor.stop, turn, most=15):
        assert not await motor.is_moving()
        assert not rotor.enabled()
        assert await motor.get_position() == rotor.position / 200


async def test_invalid_speeds_are_refused(bench: Bench, autojump_clock: MockClock) -> None:
    motor, rotor = await stepper(bench)
    for call in (motor.go_for(0.01, 1), motor.go_for(60, 0), motor.set_rpm(0), motor.go_to(60, float("inf"))):
        with pytest.raises(MachineError) as caught:
            await call
        assert caught.value.kind is ErrorKind.INVALID
    await motor.go_for(9999, 1)
    assert rotor.fastest() <= 1000 * 1.01


def test_rates_that_cannot_be_stepped_are_refused() -> None:
    whole = {"board": "pi", "pins": {"step": "1", "dir": "2"}}
    with pytest.raises(ConfigError, match=r"more than 2000 steps per second: use at most 37\.5"):
        decode_attributes(GpioStepperConfig, {**whole, "microsteps": 16, "max_rpm": 60}, path="attributes")
    with pytest.raises(ConfigError, match="named twice"):
        decode_attributes(GpioStepperConfig, {**whole, "pins": {"step": "1", "dir": "1"}}, path="attributes")
    config, _ = decode_attributes(GpioStepperConfig, {**whole, "stepper_delay_usec": 1000}, path="attributes")
    assert config.step_rate == 500
    assert decode_attributes(GpioStepperConfig, whole, path="attributes")[0].step_rate == MAX_STEP_RATE

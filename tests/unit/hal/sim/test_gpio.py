"""Simulated pins, wires and edges."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from hal.errors import Fault, HalError
from hal.ports.digital import Edge
from hal.sim import World
from hal.sim.bench.board import COUNTS, SimBoard
from hal.sim.bench.encoder import SimEncoder
from hal.sim.bench.motor import MotorPins, SimMotor
from hal.sim.gpio.pins import EDGE_BUFFER


@pytest.fixture
def world() -> World:
    return World(seed=3)


async def test_an_output_drives_the_inputs_it_is_wired_to(world: World, autojump_clock: MockClock) -> None:
    first, other = world.board("one"), world.board("other")
    with world.holding(first), world.holding(other):
        first.wire([("1", "2"), ("2", "other:7")])
        first.pin("1").write(True)
        assert first.pin("2").read()
        assert other.pin("7").read()
        assert not other.pin("8").read()
    with world.holding(world.board("other")) as again:
        assert not again.pin("7").read()


async def test_the_last_to_drive_wins_and_letting_go_gives_back(world: World, autojump_clock: MockClock) -> None:
    with world.holding(world.board("b")) as board:
        board.wire([("1", "2")])
        board.pin("1").write(True)
        board.pin("2").write(False)
        assert not board.pin("1").read()
        board.pin("1").write(True)
        assert board.pin("2").read()
        board.pin("2").write(False)
        assert not board.pin("1").read()
        world.wiring.set_drive(world.pin("b", "2"), None, world.now())
        assert board.pin("1").read()


async def test_edges_arrive_in_order_with_their_times(world: World, autojump_clock: MockClock) -> None:
    begin = trio.current_time()
    with world.holding(world.board("b")) as board:
        async with board.pin("1").edges() as edges, trio.open_nursery() as nursery:
            seen: list[Edge] = []

            async def listen() -> None:
                while True:
                    seen.append(await anext(aiter(edges)))

            nursery.start_soon(listen)
            await wait_all_tasks_blocked()
            board.pin("1").write(True)
            board.pin("1").write(False)  # at the same instant, but still two edges
            await trio.sleep(1)
            board.pin("1").set_wave(0.5, 2.0)
            await trio.sleep(1.1)
            board.pin("1").write(False)
            await trio.sleep(5)
            nursery.cancel_scope.cancel()
    assert [(edge.high, round(edge.time - begin, 6)) for edge in seen] == [
        (True, 0.0),
        (False, 0.0),
        (True, 1.0),
        (False, 1.25),
        (True, 1.5),
        (False, 1.75),
        (True, 2.0),
        (False, 2.1),
    ]
    assert edges.dropped == 0


async def test_a_slow_reader_loses_the_oldest_edges_and_gets_their_number(
    world: World, autojump_clock: MockClock
) -> None:
    with world.holding(world.board("b")) as board:
        board.pin("1").set_wave(0.5, 1000.0)
        async with board.pin("1").edges() as edges:
            await trio.sleep(3600)
            first = await anext(aiter(edges))
            assert edges.dropped == pytest.approx(2 * 3600 * 1000 - EDGE_BUFFER, abs=2)
            assert first.time > trio.current_time() - 3


async def test_counts_do_not_need_a_reader(world: World, autojump_clock: MockClock) -> None:
    with world.holding(world.board("b")) as board:
        counter = board.count_edges("2")
        board.wire([("1", "2")])
        begin = trio.current_time()
        board.pin("1").write(True)
        board.pin("1").write(True)
        assert counter.count(begin) == 1
        board.pin("1").set_wave(0.5, 1000.0)  # the wave begins high, so there is no edge yet
        await trio.sleep(86400)
        assert counter.count(world.now()) == pytest.approx(1 + 86_400_000, abs=1)
        board.pin("1").write(False)
        before = counter.count(world.now())
        await trio.sleep(10)
        assert counter.count(world.now()) == before


async def test_waves_are_kept_within_what_a_pin_can_do(world: World, autojump_clock: MockClock) -> None:
    with world.holding(world.board("b")) as board:
        with pytest.raises(HalError, match="not a valid frequency") as caught:
            board.pin("1").set_wave(0.5, 0)
        assert caught.value.fault is Fault.UNSUPPORTED
        with pytest.raises(HalError, match="not a valid frequency"):
            board.pin("1").set_frequency(1e9)
        board.pin("1").set_wave(0.25, 50)
        board.pin("1").set_frequency(60)
        assert board.pin("1").wave() == (0.25, 60)


async def test_the_pins_of_a_bridge_drive_the_motor(world: World, autojump_clock: MockClock) -> None:
    with world.holding(world.board("b")) as board:
        motor = SimMotor("m", 60.0, world.now())
        pins = {name: world.pin("b", name) for name in ("a", "b", "pwm")}
        motor.pins = MotorPins(world.wiring, motor.shaft, **pins)
        with world.holding(motor):
            board.pin("pwm").set_wave(0.5, 100)
            assert motor.shaft.power == 0
            board.pin("a").write(True)
            assert motor.shaft.power == 0.5
            board.pin("b").write(True)
            assert motor.shaft.power == 0
            board.pin("a").write(False)
            assert motor.shaft.power == -0.5
        assert motor.shaft.power == 0
        board.pin("a").write(True)
        assert motor.shaft.power == 0
    assert not any(pin.watchers for pin in pins.values())


async def test_a_direction_pin_gives_the_sense(world: World, autojump_clock: MockClock) -> None:
    with world.holding(world.board("b")) as board:
        motor = SimMotor("m", 60.0, world.now())
        motor.pins = MotorPins(world.wiring, motor.shaft, direction=world.pin("b", "dir"), pwm=world.pin("b", "pwm"))
        with world.holding(motor):
            board.pin("pwm").set_wave(0.25, 100)
            assert motor.shaft.power == -0.25
            board.pin("dir").write(True)
            assert motor.shaft.power == 0.25


async def test_an_encoder_counts_what_its_pins_do(world: World, autojump_clock: MockClock) -> None:
    a, b = world.pin("b", "1"), world.pin("b", "2")
    with world.holding(world.board("b")) as board, world.holding(SimEncoder("e", world.wiring, [a, b])) as encoder:
        forward = [(True, False), (True, True), (False, True), (False, False)]
        for first, two in forward * 3:
            board.pin("1").write(first)
            board.pin("2").write(two)
        assert encoder.ticks(world.now()) == 12
        for first, two in [*reversed(forward[:3]), (False, False)]:
            board.pin("1").write(first)
            board.pin("2").write(two)
        assert encoder.ticks(world.now()) == 8


async def test_a_single_track_counts_rising_edges(world: World, autojump_clock: MockClock) -> None:
    pin = world.pin("b", "1")
    with world.holding(world.board("b")) as board, world.holding(SimEncoder("e", world.wiring, [pin])) as encoder:
        board.pin("1").set_wave(0.5, 10)
        await trio.sleep(10.05)
        assert encoder.ticks(world.now()) == 101
        encoder.reset(world.now())
        assert encoder.ticks(world.now()) == 0


async def test_a_disc_shows_on_the_pins_of_the_board(world: World, autojump_clock: MockClock) -> None:
    pins = [world.pin("b", "1"), world.pin("b", "2")]
    with world.holding(world.board("b")) as board, world.holding(SimEncoder("e", world.wiring, pins)) as encoder:
        motor = SimMotor("m", 60.0, world.now())
        motor.encoder, motor.ticks_per_rotation = encoder, 4
        with world.holding(motor):
            counter = board.count_edges("1")
            motor.shaft.drive(1.0, world.now())
            rest = motor.shaft.stop_at(2.25, world.now())
            assert rest is not None
            await world.sleep_until(rest)
            assert encoder.ticks(world.now()) == 9
            assert counter.count(world.now()) == 3
            assert board.pin("1").read()  # tick 9 is tick 1 of the third cycle
            assert not board.pin("2").read()
        assert encoder.ticks_per_rotation is None
        assert encoder.ticks(world.now()) == 9


async def test_analog_channels_span_their_range(world: World, autojump_clock: MockClock) -> None:
    from hal.sim.bench.board import SimAnalog

    with world.holding(world.board("b")) as board:
        channel = SimAnalog(board.pin("1").mean, board.pin("1"))
        channel.write(COUNTS - 1)
        assert channel.read() == COUNTS - 1
        board.pin("1").set_wave(0.5, 100)
        assert channel.read() == pytest.approx(COUNTS / 2, abs=1)
        with pytest.raises(ValueError, match="outside"):
            channel.write(COUNTS)


async def test_a_stopped_board_leaves_its_pins_low(world: World, autojump_clock: MockClock) -> None:
    with world.holding(world.board("b")) as board:
        board.wire([("1", "2")])
        board.count_edges("2")
        board.pin("1").write(True)
    assert isinstance(board, SimBoard)
    for pin in world.wiring.pins("b"):
        assert pin.drive is None
        assert not pin.watchers
        assert not pin.wires
    assert world.devices() == []

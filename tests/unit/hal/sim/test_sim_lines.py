"""Simulated lines: levels, bias, safe levels, debouncing, owners and faults."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from hal.errors import Fault, HalError
from hal.ports.digital import Edge, EdgeEvents, InputSettings, Line, OutputSettings
from hal.ports.pwm import PwmChannel
from hal.sim import World
from hal.sim.faults import FaultPlan
from hal.sim.gpio.signal import HIGH, LOW, Constant
from hal.sim.hardware import SimHardware

LINE = Line("chip", 4)
OTHER = Line("chip", 5)


@pytest.fixture
def hardware() -> SimHardware:
    return SimHardware(World(seed=1))


def drive(hardware: SimHardware, line: Line, level: Constant | None) -> None:
    """Drive the line from outside, through a pin of the plant wired to it."""
    world = hardware.world
    outside = world.pin("plant", str(line.offset))
    if outside not in hardware.pin(line).wires:
        world.wiring.connect(hardware.pin(line), outside, world.now())
    world.wiring.set_drive(outside, level, world.now())


def level(hardware: SimHardware, line: Line) -> bool:
    return hardware.world.wiring.signal(hardware.pin(line)).level(hardware.world.now())


@pytest.mark.parametrize(("bias", "expected"), [("up", True), ("down", False), ("none", False), ("as_is", False)])
async def test_an_undriven_line_has_the_level_of_its_resistor(
    hardware: SimHardware, autojump_clock: MockClock, bias: str, expected: bool
) -> None:
    async with hardware.digital_input(LINE, InputSettings(bias=bias)) as line:  # type: ignore[arg-type]
        assert line.read() is expected
        drive(hardware, LINE, LOW if expected else HIGH)
        assert line.read() is not expected
        drive(hardware, LINE, None)
        assert line.read() is expected


async def test_a_resistor_stays_until_another_is_chosen(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.digital_input(LINE, InputSettings(bias="up")):
        pass
    async with hardware.digital_input(LINE, InputSettings(bias="as_is")) as line:
        assert line.read()
    async with hardware.digital_input(LINE, InputSettings(bias="none")) as line:
        assert not line.read()


async def test_a_wire_carries_an_output_to_an_input(hardware: SimHardware, autojump_clock: MockClock) -> None:
    world = hardware.world
    world.wiring.connect(hardware.pin(LINE), hardware.pin(OTHER), world.now())
    async with (
        hardware.digital_output(LINE, OutputSettings()) as output,
        hardware.digital_input(OTHER, InputSettings(active_low=True)) as line,
    ):
        assert line.read()
        output.write(True)
        assert output.read()
        assert not line.read()


@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize("active_low", [False, True])
async def test_an_output_is_safe_at_opening_and_after_closing_by_an_error(
    hardware: SimHardware, autojump_clock: MockClock, safe: bool, active_low: bool
) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the error comes from inside
        async with hardware.digital_output(LINE, OutputSettings(safe=safe, active_low=active_low)) as output:
            assert level(hardware, LINE) is (safe != active_low)
            assert output.read() is safe
            output.write(not safe)
            assert level(hardware, LINE) is (safe == active_low)
            [state] = hardware.lines.outputs()
            assert (state.level == state.safe, state.owner is None) == (False, False)
            raise ZeroDivisionError
    assert level(hardware, LINE) is (safe != active_low)
    [state] = hardware.lines.outputs()
    assert (state.level == state.safe, state.owner) == (True, None)


async def test_an_input_lets_go_of_what_an_output_held(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.digital_output(LINE, OutputSettings(safe=True)):
        pass
    assert level(hardware, LINE)
    async with hardware.digital_input(LINE, InputSettings()) as line:
        assert not line.read()
    assert hardware.lines.outputs() == []


async def test_open_drain_pulls_down_and_lets_go(hardware: SimHardware, autojump_clock: MockClock) -> None:
    world = hardware.world
    world.wiring.set_pull(hardware.pin(LINE), HIGH, world.now())
    async with hardware.digital_output(LINE, OutputSettings(safe=True, drive="open_drain")) as output:
        assert output.read()
        drive(hardware, LINE, LOW)  # another chip on the same wire
        assert not output.read()
        drive(hardware, LINE, None)
        output.write(False)
        assert not output.read()
        output.write(True)
        assert output.read()
    async with hardware.digital_output(OTHER, OutputSettings(drive="open_source")) as output:
        output.write(True)
        assert output.read()
        output.write(False)
        assert hardware.pin(OTHER).drive is None


async def test_a_line_opened_twice_is_busy_and_names_its_owner(
    hardware: SimHardware, autojump_clock: MockClock
) -> None:
    async def own(*, task_status: trio.TaskStatus[None]) -> None:
        async with hardware.digital_output(LINE, OutputSettings()):
            task_status.started()
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        await nursery.start(own, name="the relay")
        for taking in (hardware.digital_input(LINE, InputSettings()), hardware.pwm(LINE)):
            with pytest.raises(HalError, match="chip line 4 is used by the relay") as caught:
                await taking.__aenter__()
            assert caught.value.fault is Fault.BUSY
        nursery.cancel_scope.cancel()
    async with hardware.digital_input(LINE, InputSettings()):
        pass


async def test_a_shorted_output_reads_what_it_is_shorted_to(hardware: SimHardware, autojump_clock: MockClock) -> None:
    world = hardware.world
    async with hardware.digital_output(LINE, OutputSettings()) as output:
        world.wiring.set_short(hardware.pin(LINE), LOW, world.now())
        output.write(True)
        assert not output.read()
        world.wiring.set_short(hardware.pin(LINE), None, world.now())
        assert output.read()


async def collect(edges: EdgeEvents, until: float) -> list[Edge]:
    seen: list[Edge] = []
    with trio.move_on_at(until):
        async for edge in edges:
            seen.append(edge)  # noqa: PERF401 - what was seen is kept when the time is over
    return seen


async def test_edges_have_times_of_the_bench_and_the_sense_of_active_low(
    hardware: SimHardware, autojump_clock: MockClock
) -> None:
    begin = trio.current_time()
    async with hardware.digital_input(LINE, InputSettings(active_low=True)) as line, line.edges() as edges:
        await trio.sleep(1)
        drive(hardware, LINE, HIGH)
        await trio.sleep(0.5)
        drive(hardware, LINE, LOW)
        assert await collect(edges, begin + 9) == [Edge(False, begin + 1), Edge(True, begin + 1.5)]
        assert edges.dropped == 0


async def test_debouncing_ignores_what_does_not_last(hardware: SimHardware, autojump_clock: MockClock) -> None:
    begin = trio.current_time()

    async def bounce() -> None:
        for pause, level in [(1, HIGH), (0.01, LOW), (0.01, HIGH), (1, LOW), (0.02, HIGH), (1, LOW)]:
            await trio.sleep(pause)
            drive(hardware, LINE, level)

    async with hardware.digital_input(LINE, InputSettings(debounce=0.05)) as line, line.edges() as edges:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bounce)
            await trio.sleep_until(begin + 1.04)
            assert not line.read()
            await trio.sleep_until(begin + 1.08)
            assert line.read()
            seen = await collect(edges, begin + 10)
    assert [edge.high for edge in seen] == [True, False]
    assert [edge.time - begin for edge in seen] == pytest.approx([1.07, 3.09])
    assert not line.read()


async def test_debouncing_without_edges_costs_nothing_and_reads_at_once(
    hardware: SimHardware, autojump_clock: MockClock
) -> None:
    async with hardware.digital_input(LINE, InputSettings()) as line:
        drive(hardware, LINE, HIGH)
        assert line.read()
        assert not hardware.pin(LINE).watchers


async def test_a_chip_that_vanishes(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.digital_output(LINE, OutputSettings()) as output:
        hardware.lines.unplug("chip")
        for use in (output.read, lambda: output.write(True)):
            with pytest.raises(HalError, match="chip line 4: No such device") as caught:
                use()
            assert caught.value.fault is Fault.GONE
        hardware.lines.plug("chip")
        assert not output.read()


async def test_an_injected_fault_strikes_at_opening(hardware: SimHardware, autojump_clock: MockClock) -> None:
    with hardware.faults.injected(str(LINE), FaultPlan(Fault.PERMISSION)):
        with pytest.raises(HalError, match=r"chip line 4: Permission denied.*group gpio") as caught:
            await hardware.digital_output(LINE, OutputSettings()).__aenter__()
        assert caught.value.fault is Fault.PERMISSION
    async with hardware.digital_output(LINE, OutputSettings()):
        pass


async def test_power_off_lets_every_pin_go(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.digital_output(LINE, OutputSettings(safe=True)):
        hardware.lines.power_off()
        assert not level(hardware, LINE)


async def test_a_wave_on_a_line_and_low_at_the_end(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.pwm(LINE) as wave:
        assert wave.wave()[0] == 0
        wave.set_wave(0.25, 100.0)
        assert wave.wave() == (0.25, 100.0)
        assert hardware.world.wiring.signal(hardware.pin(LINE)).mean(0) == 0.25
        wave.set_wave(1.0, 50.0)
        assert level(hardware, LINE)
        with pytest.raises(HalError) as caught:
            wave.set_wave(0.5, 1e9)
        assert caught.value.fault is Fault.UNSUPPORTED
        with pytest.raises(ValueError, match=r"a duty of 1\.5"):
            wave.set_wave(1.5, 50.0)
    assert not level(hardware, LINE)


async def test_a_channel_comes_out_on_its_line_unless_that_is_taken(
    hardware: SimHardware, autojump_clock: MockClock
) -> None:
    pin = next(pin for pin in hardware.board().pins if pin.pwm is not None and pin.line is not None)
    assert isinstance(pin.pwm, PwmChannel)
    assert pin.line is not None
    async with hardware.pwm(pin.pwm) as wave:
        wave.set_wave(0.5, 1000.0)
        assert hardware.world.wiring.signal(hardware.pin(pin.line)).mean(0) == 0.5
    async with hardware.digital_output(pin.line, OutputSettings(safe=True)), hardware.pwm(pin.pwm) as wave:
        wave.set_wave(0.5, 1000.0)
        assert level(hardware, pin.line)

"""PWM of the board: by hardware where available, else by software."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from hal.errors import Fault
from hal.ports.digital import Line
from hal.sim.bench.world import World
from hal.sim.faults import FaultPlan
from hal.sim.gpio.signal import Square
from hal.sim.hardware import SimHardware
from schema.errors import ErrorKind, MachineError
from tests.unit.models.board.support import CHIP, Rig, entry, rig

HARDWARE = "fe20c000.pwm channel 0"  # behind header pin 12 of a Raspberry Pi 4


def wave(r: Rig, offset: int) -> tuple[float, float] | bool:
    """Return the duty and frequency on the line, or its constant level."""
    signal = r.hardware.world.wiring.signal(r.hardware.pin(Line(CHIP, offset)))
    return (signal.duty, signal.frequency) if isinstance(signal, Square) else signal.level(trio.current_time())


async def test_a_wave_by_software(autojump_clock: MockClock) -> None:
    async with rig(entry(default_pwm_frequency_hz=200)) as r:
        assert await r.call("pwm", pin="11") == 0.0
        assert await r.call("pwm_frequency", pin="11") == 200
        await r.call("set_pwm", pin="11", duty_cycle_pct=0.25)
        assert wave(r, 17) == (0.25, 200)
        assert await r.call("pwm", pin="GPIO17") == 0.25
        await r.call("set_pwm_frequency", pin="11", frequency_hz=50)
        assert wave(r, 17) == (0.25, 50)
        assert await r.call("pwm_frequency", pin="11") == 50
        await r.call("set_pwm_frequency", pin="11", frequency_hz=0)
        assert wave(r, 17) == (0.25, 200)
        await r.call("set_pwm", pin="11", duty_cycle_pct=1)
        assert wave(r, 17) is True
        assert r.hardware.reservations.all() == {f"control of {CHIP} line 17": "rdk:component:board/board 11 (GPIO17)"}
    assert wave(r, 17) is False


async def test_a_frequency_is_remembered_until_there_is_a_wave(autojump_clock: MockClock) -> None:
    async with rig() as r:
        await r.call("set_pwm_frequency", pin="11", frequency_hz=120)
        assert wave(r, 17) is False
        await r.call("set_pwm", pin="11", duty_cycle_pct=0.5)
        assert wave(r, 17) == (0.5, 120)


async def test_levels_and_waves_change_each_other(autojump_clock: MockClock) -> None:
    async with rig() as r:
        await r.call("set_gpio", pin="11", high=True)
        assert await r.call("pwm", pin="11") == 1.0
        await r.call("set_pwm", pin="11", duty_cycle_pct=0.6)
        assert wave(r, 17) == (0.6, 800)
        assert await r.call("get_gpio", pin="11") is True
        await r.call("set_pwm", pin="11", duty_cycle_pct=0.4)
        assert await r.call("get_gpio", pin="11") is False
        await r.call("set_gpio", pin="11", high=True)
        assert wave(r, 17) is True
        await r.call("set_gpio", pin="11", high=False)
        assert wave(r, 17) is False
        assert await r.call("pwm", pin="11") == 0.0


async def test_a_hardware_channel_is_taken_where_there_is_one(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    async with rig(hardware=hardware) as r:
        await r.call("set_pwm", pin="12", duty_cycle_pct=0.5)
        assert {output.name for output in hardware.lines.outputs()} == {HARDWARE}
        assert wave(r, 18) == (0.5, 800)
    assert wave(r, 18) is False


@pytest.mark.parametrize("fault", [Fault.GONE, Fault.BUSY, Fault.PERMISSION])
async def test_software_stands_in_for_a_channel_that_cannot_be_had(autojump_clock: MockClock, fault: Fault) -> None:
    hardware = SimHardware(World())
    hardware.faults.inject(HARDWARE, FaultPlan(fault))
    async with rig(hardware=hardware) as r:
        await r.call("set_pwm", pin="12", duty_cycle_pct=0.5)
        assert {output.name for output in hardware.lines.outputs()} == {f"{CHIP} line 18"}
        assert wave(r, 18) == (0.5, 800)
        assert r.state() == "ready"


@pytest.mark.parametrize("duty", [-0.1, 1.1, float("nan"), float("inf")])
async def test_an_impossible_duty_is_refused(autojump_clock: MockClock, duty: float) -> None:
    async with rig() as r:
        with pytest.raises(MachineError, match="use 0") as caught:
            await r.call("set_pwm", pin="11", duty_cycle_pct=duty)
        assert caught.value.kind is ErrorKind.INVALID
        assert wave(r, 17) is False


async def test_an_impossible_frequency_changes_nothing(autojump_clock: MockClock) -> None:
    async with rig() as r:
        await r.call("set_pwm", pin="11", duty_cycle_pct=0.5)
        with pytest.raises(MachineError, match="Hz"):
            await r.call("set_pwm_frequency", pin="11", frequency_hz=2_000_000)
        assert wave(r, 17) == (0.5, 800)
        await r.call("set_pwm", pin="11", duty_cycle_pct=0.75)
        assert wave(r, 17) == (0.75, 800)

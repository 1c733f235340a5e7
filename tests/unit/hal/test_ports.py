"""The simulated family implements every port: the type checker compares signatures, and these tests the methods."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from hal.ports.analog import AnalogInput
from hal.ports.digital import DigitalInput, DigitalOutput
from hal.ports.pwm import PwmOutput
from hal.sim import World
from hal.sim.bench.board import SimAnalog
from hal.sim.gpio.pins import SimPin


def digital(pin: SimPin) -> tuple[DigitalInput, DigitalOutput, PwmOutput]:
    return pin, pin, pin


def analog(channel: SimAnalog) -> AnalogInput:
    return channel


async def test_a_simulated_pin_is_behind_the_ports(autojump_clock: MockClock) -> None:
    world = World()
    with world.holding(world.board("b")) as board:
        level, output, wave = digital(board.pin("1"))
        output.write(True)
        assert level.read()
        wave.set_wave(0.5, 10.0)
        assert wave.wave() == (0.5, 10.0)
        channel = SimAnalog(board.pin("2").mean, board.pin("2"))
        channel.write(100)
        reader = analog(channel)
        assert reader.read() == 100
        assert reader.range.high == pytest.approx(reader.range.step * 1023)

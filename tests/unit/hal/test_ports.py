"""The simulated family is behind every port. What does not fit fails the type checker and, here, a missing method."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from hal.ports.analog import AnalogInput, AnalogOutput
from hal.ports.digital import DigitalInput, DigitalOutput
from hal.ports.pwm import PwmOutput
from hal.sim import World
from hal.sim.board import SimAnalog
from hal.sim.gpio import SimPin


def digital(pin: SimPin) -> tuple[DigitalInput, DigitalOutput, PwmOutput]:
    return pin, pin, pin


def analog(channel: SimAnalog) -> tuple[AnalogInput, AnalogOutput]:
    return channel, channel


async def test_a_simulated_pin_is_behind_the_ports(autojump_clock: MockClock) -> None:
    world = World()
    with world.holding(world.board("b")) as board:
        level, output, wave = digital(board.pin("1"))
        output.write(True)
        assert level.read()
        wave.set_wave(0.5, 10.0)
        assert wave.wave() == (0.5, 10.0)
        reader, writer = analog(SimAnalog(board.pin("2").mean, board.pin("2")))
        writer.write(100)
        assert reader.read() == 100
        assert reader.range.high == pytest.approx(reader.range.step * 1023)

"""Simulated motors and encoders connected to the pins of a simulated board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import trio

from engine.resource import Extra
from hal.sim.bench.encoder import SimEncoder
from hal.sim.bench.motor import MotorPins, SimMotor
from hal.sim.gpio.wiring import Pin
from models.fake.board.model import FakeBoard
from tests.unit.models.builtin.support import Bench

TICKS = 200  # per revolution of the simulated encoder
INTERRUPTS = [{"name": "enc-a", "pin": "35"}, {"name": "enc-b", "pin": "37"}]


class LateBoard(FakeBoard):
    """Return from set_gpio some time after the level has changed."""

    async def set_gpio(self, pin: str, high: bool, *, extra: Extra = None) -> None:
        await super().set_gpio(pin, high)
        await trio.sleep(0.0001)


async def board(bench: Bench, cls: type[FakeBoard] = FakeBoard) -> Any:
    """Add a board with the interrupts enc-a and enc-b on pins 35 and 37."""
    return await bench.add("board", "pi", {"digital_interrupts": INTERRUPTS}, cls=cls)


@contextmanager
def plant(bench: Bench, wires: Mapping[str, str], *, max_rpm: float = 120, reverse: bool = False) -> Iterator[SimMotor]:
    """Connect a motor to `wires` (a, b, direction, pwm); its encoder drives pins 35 and 37 of the board."""
    world = bench.world
    motor = SimMotor("plant", max_rpm, world.now())
    pins = {use: world.pin("pi", pin) for use, pin in wires.items()}
    motor.pins = MotorPins(world.wiring, motor.shaft, **pins)
    tracks = [world.pin("pi", pin) for pin in ("35", "37")]
    encoder = SimEncoder("disc", world.wiring, tracks[::-1] if reverse else tracks)
    motor.encoder, motor.ticks_per_rotation = encoder, TICKS
    with world.holding(encoder), world.holding(motor):
        yield motor


class Both:
    """Watch two pins; `seen` tells whether they were ever high together."""

    def __init__(self, bench: Bench, item: str, other: str) -> None:
        self._bench = bench
        self._pins: list[Pin] = [bench.world.pin("pi", pin) for pin in (item, other)]
        self.seen = False
        for pin in self._pins:
            pin.watchers.append(self)

    def settle(self, t: float) -> None:
        """Do nothing: there is no state to update."""

    def changed(self, t: float) -> None:
        """Check both pins."""
        signals = [self._bench.world.wiring.signal(pin) for pin in self._pins]
        self.seen |= all(signal.mean(t) > 0 for signal in signals)


def is_off(bench: Bench, *pins: str) -> bool:
    """Return whether all pins are constantly low."""
    world = bench.world
    return not any(world.wiring.signal(world.pin("pi", pin)).mean(world.now()) for pin in pins)

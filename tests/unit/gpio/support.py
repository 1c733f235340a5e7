"""Plants on the pins of a simulated board: what a driver's outputs really move, and what its inputs really see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import trio

from hal.sim.encoder import SimEncoder
from hal.sim.motor import MotorPins, SimMotor
from hal.sim.wiring import Pin
from runtime.builtin.fake.board import FakeBoard
from runtime.resource import Extra
from tests.unit.builtin.support import Bench

TICKS = 200  # of the plant's encoder, for one revolution
INTERRUPTS = [{"name": "enc-a", "pin": "35"}, {"name": "enc-b", "pin": "37"}]


class LateBoard(FakeBoard):
    """Answers a while after it has done what it was told."""

    async def set_gpio(self, pin: str, high: bool, *, extra: Extra = None) -> None:
        await super().set_gpio(pin, high)
        await trio.sleep(0.0001)


async def board(bench: Bench, cls: type[FakeBoard] = FakeBoard) -> Any:
    """A board whose interrupts enc-a and enc-b are on pins 35 and 37."""
    return await bench.add("board", "pi", {"digital_interrupts": INTERRUPTS}, cls=cls)


@contextmanager
def plant(bench: Bench, wires: Mapping[str, str], *, max_rpm: float = 120, reverse: bool = False) -> Iterator[SimMotor]:
    """A motor whose bridge hangs on `wires` (a, b, direction, pwm); its encoder drives pins 35 and 37 of the board."""
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
    """Watches two pins; `seen` is whether they were ever high together."""

    def __init__(self, bench: Bench, one: str, other: str) -> None:
        self._bench = bench
        self._pins: list[Pin] = [bench.world.pin("pi", pin) for pin in (one, other)]
        self.seen = False
        for pin in self._pins:
            pin.watchers.append(self)

    def settle(self, t: float) -> None:
        """Nothing to account for."""

    def changed(self, t: float) -> None:
        """Look at both."""
        signals = [self._bench.world.wiring.signal(pin) for pin in self._pins]
        self.seen |= all(signal.mean(t) > 0 for signal in signals)


def is_off(bench: Bench, *pins: str) -> bool:
    """Whether none of the pins carries anything."""
    world = bench.world
    return not any(world.wiring.signal(world.pin("pi", pin)).mean(world.now()) for pin in pins)

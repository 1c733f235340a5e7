"""The simulated bench of a machine: its devices, clock and seeded noise.

There are no periodic updates. The state of a device is a function of its commands and the time; code that waits for an
event (an edge, an arrival) computes its time and sleeps until then.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import trio

from hal.errors import Fault, HalError
from hal.sim.bench.board import SimBoard
from hal.sim.bench.device import Device
from hal.sim.bench.motor import SimMotor
from hal.sim.faults import Faults
from hal.sim.gpio.wiring import Pin, Wiring

SUPPLY_VOLTS: Final = 12.6  # a full three-cell battery
SUPPLY_OHMS: Final = 0.12  # internal resistance of the battery and the wires
AMBIENT: Final = 21.0  # degrees Celsius
DAY: Final = 120.0  # seconds of a day on the bench, so that daylight changes within a demonstration
NOISE_RATE: Final = 20.0  # Hz at which noise changes

DeviceT = TypeVar("DeviceT", bound=Device)


class World:
    """A bench, owned by the composition root and shared by the simulated models of a machine."""

    def __init__(self, *, seed: int = 0, clock: Callable[[], float] = trio.current_time) -> None:
        self.seed = seed
        self.now = clock
        self.wiring = Wiring()
        self.faults = Faults(seed)
        self._devices: dict[tuple[type[Device], str], Device] = {}

    async def sleep_until(self, t: float) -> None:
        """Sleep until `t` of the bench's clock, or return at once if it has passed; always a checkpoint."""
        await trio.lowlevel.checkpoint()
        while (remaining := t - self.now()) > 0:  # noqa: ASYNC110 - repeats only after a rounding error
            await trio.sleep(remaining)

    @contextmanager
    def holding(self, device: DeviceT) -> Iterator[DeviceT]:
        """Put `device` on the bench while the context is open; HalError (busy) if the name is used for its type."""
        key = (type(device), device.name)
        if key in self._devices:
            raise HalError(f"the bench already has a {type(device).__name__} called {device.name}", Fault.BUSY)
        self._devices[key] = device
        try:
            device.open(self.now())
            yield device
        finally:
            del self._devices[key]
            device.close(self.now())

    def find(self, kind: type[DeviceT], name: str) -> DeviceT | None:
        """Return the device of that kind and name, if it is on the bench."""
        device = self._devices.get((kind, name))
        return device if isinstance(device, kind) else None

    def devices(self) -> list[Device]:
        """Return all devices on the bench in the order of their arrival."""
        return list(self._devices.values())

    def board(self, name: str) -> SimBoard:
        """Create a board, to be put on the bench by `holding`."""
        return SimBoard(name, self.wiring, self.now)

    def pin(self, board: str, name: str) -> Pin:
        """Return the pin `name` of `board`."""
        return self.wiring.pin(board, name)

    def noise(self, key: str, spread: float = 1.0) -> float:
        """Return Gaussian noise that depends only on seed, key and time, so that keys are independent."""
        moment = math.floor(self.now() * NOISE_RATE)
        return random.Random(f"{self.seed}:{key}:{moment}").gauss(0.0, spread)

    def current(self) -> float:
        """Return the current drawn from the supply in amperes."""
        now = self.now()
        return sum(device.current(now) for device in self._devices.values())

    def volts(self) -> float:
        """Return the supply voltage, which drops under load."""
        return SUPPLY_VOLTS - SUPPLY_OHMS * self.current()

    def temperature(self) -> float:
        """Return the temperature of the bench in degrees Celsius, which running motors increase."""
        now = self.now()
        motors = [device for device in self._devices.values() if isinstance(device, SimMotor)]
        return AMBIENT + 0.1 * sum(motor.shaft.heat(now) for motor in motors) + self.noise("temperature", 0.02)

    def light(self) -> float:
        """Return the light on the bench in lux, from daylight and outputs that are on."""
        now = self.now()
        boards = [device for device in self._devices.values() if isinstance(device, SimBoard)]
        lamps = sum(p.drive.mean(now) for b in boards for p in self.wiring.pins(b.name) if p.drive is not None)
        day = 300 + 200 * math.sin(2 * math.pi * now / DAY)
        return max(0.0, day + 40 * lamps + self.noise("light", 1.0))

    def quantities(self) -> dict[str, float]:
        """Return the quantities that sensors on the bench can measure, with the unit in the name."""
        volts, amperes = self.volts(), self.current()
        return {
            "temperature_c": self.temperature(),
            "light_lux": self.light(),
            "supply_v": volts,
            "supply_a": amperes,
            "supply_w": volts * amperes,
        }

"""The simulated bench of one machine: everything on it, its clock and its seeded noise.

Nothing here ticks. A device's state is a function of the commands given so far and of the time of asking; whoever needs
an event (an edge, an arrival) computes when it will be and sleeps until then.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import trio

from hal.errors import Fault, HalError
from hal.sim.board import SimBoard
from hal.sim.device import Device
from hal.sim.faults import Faults
from hal.sim.motor import SimMotor
from hal.sim.wiring import Pin, Wiring

SUPPLY_VOLTS: Final = 12.6  # a full three-cell battery
SUPPLY_OHMS: Final = 0.12  # its inner resistance and the wires
AMBIENT: Final = 21.0  # degrees Celsius
DAY: Final = 120.0  # seconds of a bench's day: daylight comes and goes within a demonstration
NOISE_RATE: Final = 20.0  # Hz at which noise changes

DeviceT = TypeVar("DeviceT", bound=Device)


class World:
    """One bench; owned by the composition root, shared by the simulated models of one machine."""

    def __init__(self, *, seed: int = 0, clock: Callable[[], float] = trio.current_time) -> None:
        self.seed = seed
        self.now = clock
        self.wiring = Wiring()
        self.faults = Faults(seed)
        self._devices: dict[tuple[type[Device], str], Device] = {}

    async def sleep_until(self, t: float) -> None:
        """Return at `t` of the bench's clock, or at once if that is over; always a checkpoint."""
        await trio.lowlevel.checkpoint()
        while (left := t - self.now()) > 0:  # noqa: ASYNC110 - a second time only if rounding cut the first short
            await trio.sleep(left)

    @contextmanager
    def holding(self, device: DeviceT) -> Iterator[DeviceT]:
        """Put `device` on the bench while the context is open; HalError (busy) if one like it has that name."""
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
        """The device of that kind and name, if it is on the bench."""
        found = self._devices.get((kind, name))
        return found if isinstance(found, kind) else None

    def devices(self) -> list[Device]:
        """Everything on the bench, in the order it came."""
        return list(self._devices.values())

    def board(self, name: str) -> SimBoard:
        """A new board, to be put on the bench by `holding`."""
        return SimBoard(name, self.wiring, self.now)

    def pin(self, board: str, name: str) -> Pin:
        """A pin by the names of its board and its own."""
        return self.wiring.pin(board, name)

    def noise(self, key: str, spread: float = 1.0) -> float:
        """Gaussian noise of that spread: a function of seed, key and time, so nobody disturbs anybody else's."""
        moment = math.floor(self.now() * NOISE_RATE)
        return random.Random(f"{self.seed}:{key}:{moment}").gauss(0.0, spread)

    def current(self) -> float:
        """Amperes drawn from the supply."""
        now = self.now()
        return sum(device.current(now) for device in self._devices.values())

    def volts(self) -> float:
        """Volts at the supply: they sag under load."""
        return SUPPLY_VOLTS - SUPPLY_OHMS * self.current()

    def temperature(self) -> float:
        """Degrees Celsius on the bench: working motors warm it."""
        now = self.now()
        motors = [device for device in self._devices.values() if isinstance(device, SimMotor)]
        return AMBIENT + 0.1 * sum(motor.shaft.heat(now) for motor in motors) + self.noise("temperature", 0.02)

    def light(self) -> float:
        """Lux on the bench: daylight, and every output that is on."""
        now = self.now()
        boards = [device for device in self._devices.values() if isinstance(device, SimBoard)]
        lamps = sum(p.drive.mean(now) for b in boards for p in self.wiring.pins(b.name) if p.drive is not None)
        day = 300 + 200 * math.sin(2 * math.pi * now / DAY)
        return max(0.0, day + 40 * lamps + self.noise("light", 1.0))

    def quantities(self) -> dict[str, float]:
        """Everything a sensor on the bench can feel, with the unit in the name."""
        volts, amperes = self.volts(), self.current()
        return {
            "temperature_c": self.temperature(),
            "light_lux": self.light(),
            "supply_v": volts,
            "supply_a": amperes,
            "supply_w": volts * amperes,
        }

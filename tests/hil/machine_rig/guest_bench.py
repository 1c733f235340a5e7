"""In the guest: the plant of a test, written for simulated hardware, connected to the kernel's lines and an adapter.

The plant's own world mirrors the kernel: a pin there has the level of the GPIO line, and the chips on its bus are those
of the adapter. So the plant is the same class that runs on the simulated rig.
"""

from __future__ import annotations

import sys
from typing import Any

import trio

from hal.errors import Fault
from hal.ports.digital import Line
from hal.sim.bench.world import World
from hal.sim.faults import FaultPlan
from hal.sim.gpio.signal import HIGH, LOW
from hal.sim.hardware import SimHardware
from hal.sim.i2c import SimI2cBus
from hal.sim.target import I2cTarget, Nak
from rig.plant import load_plant
from tests.hil.guest.adapter import Adapter
from tests.hil.guest.gpio_bank import GpioBank


class Chip:
    """A chip of the plant's bus as the adapter sees it: with the faults of that bus."""

    def __init__(self, bus: SimI2cBus, address: int, target: I2cTarget, hardware: SimHardware) -> None:
        self._names = bus.label(address), bus.name
        self._target = target
        self._faults = hardware.faults

    def write(self, data: bytes) -> None:
        self._strike()
        self._target.write(data)

    def read(self, n: int) -> bytes:
        self._strike()
        return self._faults.garble(self._names[0], self._target.read(n))

    def _strike(self) -> None:
        _, fault = self._faults.draw(*self._names)
        if fault is not None:
            raise Nak


class GuestBench:
    """The plant `name` (module:Class, also searched in `folder`), on an adapter for `bus` and a GPIO chip."""

    def __init__(self, name: str, folder: str, seed: int, bus: str, adapter: Adapter, bank: GpioBank) -> None:
        sys.path.insert(0, folder)
        self._hardware = SimHardware(World(seed=seed))
        model_class = load_plant(name)
        self.model: Any = model_class(self._hardware) if model_class is not None else None
        self._bank = bank
        wires = self._hardware.bus(bus)
        for address, target in wires.targets().items():
            adapter.attach(address, Chip(wires, address, target, self._hardware))

    async def run(self) -> None:
        """Make the plant's pins follow the kernel's lines."""
        world = self._hardware.world
        pins = {int(pin.name): pin for pin in world.wiring.pins(self._bank.label) if pin.name.isdigit()}
        levels: dict[int, bool] = {}
        while True:
            changed = self._bank.changed()
            for line, pin in pins.items():
                level = self._bank.value(line)
                if levels.get(line) is not level:
                    levels[line] = level
                    world.wiring.set_drive(pin, HIGH if level else LOW, world.now())
            await changed.wait()

    def get(self, name: str) -> Any:
        return getattr(self.model, name, ()) if name == "RECORDED" else getattr(self.model, name)

    def set(self, name: str, value: Any) -> None:
        getattr(self.model, name)
        setattr(self.model, name, value)

    async def call(self, name: str, arguments: list[Any]) -> Any:
        await trio.lowlevel.checkpoint()
        return getattr(self.model, name)(*arguments)

    def inject(self, name: str, plan: dict[str, Any]) -> None:
        fault = Fault(plan["fault"]) if plan["fault"] else None
        self._hardware.faults.inject(name, FaultPlan(**{**plan, "fault": fault}))

    def clear(self, name: str) -> None:
        self._hardware.faults.clear(name)

    def short(self, line: int, level: bool | None) -> None:
        """Short a pin of the plant, regardless of the kernel's level."""
        world = self._hardware.world
        signal = None if level is None else HIGH if level else LOW
        world.wiring.set_short(self._hardware.pin(Line(self._bank.label, line)), signal, world.now())

    def levels(self) -> list[tuple[float, int, bool]]:
        """Return every change of level by software, in order: time of the guest, line, level."""
        changes: list[tuple[float, int, bool]] = []
        last: dict[int, bool] = {}
        for event in self._bank.events:
            if last.get(event.line) is not event.high:
                last[event.line] = event.high
                changes.append((event.time, event.line, event.high))
        return changes

    def left_driven(self) -> list[str]:
        """Return the lines that a program still holds."""
        last = {event.line: event for event in self._bank.events if event.what in ("requested", "released")}
        return [f"{self._bank.label} line {n}" for n, event in sorted(last.items()) if event.what == "requested"]

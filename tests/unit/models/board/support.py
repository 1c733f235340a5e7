"""A machine in memory with a board on a simulated computer, with access to both sides of its pins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from trio.testing import wait_all_tasks_blocked

from hal.ports.digital import Line
from hal.sim.bench.world import World
from hal.sim.gpio.signal import HIGH, LOW
from hal.sim.hardware import SimHardware
from runtime.server.memory import MemoryMachine, open_machine

BOARD = "rdk:component:board"
CHIP = "pinctrl-bcm2711"


def entry(name: str = "board", **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": BOARD, "model": "rdk:builtin:linux", "attributes": attributes}


class Rig:
    """One machine and its simulated computer."""

    def __init__(self, memory: MemoryMachine, hardware: SimHardware) -> None:
        self.memory = memory
        self.hardware = hardware
        self.client = memory.client()

    async def call(self, method: str, name: str = "board", **arguments: Any) -> Any:
        return await self.client.call(BOARD, name, method, **arguments)

    def ticks(self, *names: str, board: str = "board") -> Any:
        return self.client.stream(BOARD, board, "stream_ticks", pin_names=list(names))

    def level(self, offset: int) -> bool:
        """Return the level that external hardware sees on the line."""
        pin = self.hardware.pin(Line(CHIP, offset))
        return self.hardware.world.wiring.signal(pin).level(self.hardware.world.now())

    def drive(self, offset: int, high: bool) -> None:
        """Drive the line externally."""
        pin = self.hardware.pin(Line(CHIP, offset))
        self.hardware.world.wiring.set_drive(pin, HIGH if high else LOW, self.hardware.world.now())

    def state(self, name: str = "board") -> str:
        return self.memory.graph.snapshot().nodes[f"{BOARD}/{name}"].state.value

    def reason(self, name: str = "board") -> str:
        return str(self.memory.graph.snapshot().nodes[f"{BOARD}/{name}"].reason)


@asynccontextmanager
async def rig(*entries: dict[str, Any], hardware: SimHardware | None = None) -> AsyncIterator[Rig]:
    """Run the machine; without entries it has one board named `board` without attributes."""
    hardware = hardware or SimHardware(World())
    async with open_machine({"components": list(entries or [entry()])}, hardware=hardware) as memory:
        await memory.graph.settled()
        await wait_all_tasks_blocked()
        yield Rig(memory, hardware)

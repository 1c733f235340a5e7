"""A machine in memory with a board on a simulated computer, and handles to both sides of its pins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from trio.testing import wait_all_tasks_blocked

from hal.ports.digital import Line
from hal.sim.hardware import SimHardware
from hal.sim.signal import HIGH, LOW
from hal.sim.world import World
from runtime.memory import MemoryMachine, open_machine

BOARD = "rdk:component:board"
CHIP = "pinctrl-bcm2711"


def entry(name: str = "board", **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": BOARD, "model": "rdk:builtin:linux", "attributes": attributes}


class Rig:
    """One machine and the computer under it."""

    def __init__(self, memory: MemoryMachine, hardware: SimHardware) -> None:
        self.memory = memory
        self.hardware = hardware
        self.client = memory.client()

    async def call(self, method: str, name: str = "board", **arguments: Any) -> Any:
        return await self.client.call(BOARD, name, method, **arguments)

    def ticks(self, *names: str, board: str = "board") -> Any:
        return self.client.stream(BOARD, board, "stream_ticks", pin_names=list(names))

    def level(self, offset: int) -> bool:
        """What somebody else sees on the line."""
        pin = self.hardware.pin(Line(CHIP, offset))
        return self.hardware.world.wiring.signal(pin).level(self.hardware.world.now())

    def drive(self, offset: int, high: bool) -> None:
        """Somebody else drives the line."""
        pin = self.hardware.pin(Line(CHIP, offset))
        self.hardware.world.wiring.set_drive(pin, HIGH if high else LOW, self.hardware.world.now())

    def state(self, name: str = "board") -> str:
        return self.memory.graph.snapshot().nodes[f"{BOARD}/{name}"].state.value

    def reason(self, name: str = "board") -> str:
        return str(self.memory.graph.snapshot().nodes[f"{BOARD}/{name}"].reason)


@asynccontextmanager
async def rig(*entries: dict[str, Any], hardware: SimHardware | None = None) -> AsyncIterator[Rig]:
    """Run the machine; a board called `board` without attributes unless entries are given."""
    hardware = hardware or SimHardware(World())
    async with open_machine({"components": list(entries or [entry()])}, hardware=hardware) as memory:
        await memory.graph.settled()
        await wait_all_tasks_blocked()
        yield Rig(memory, hardware)

"""A simulated gamepad: keys and axes that a test, or a person, moves."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import trio

from hal.errors import Fault
from hal.ports.controls import AxisRange, ControlChange, ControlReport, Controls, ControlsIdentity
from hal.sim.faults import system_error
from hal.sim.hotplug import Hotplug

STICK: Final = AxisRange(-32768, 32767, 128)
TRIGGER: Final = AxisRange(0, 255)
HAT: Final = AxisRange(-1, 1)

KEYS: Final = (0x130, 0x131, 0x133, 0x134, 0x136, 0x137, 0x13A, 0x13B, 0x13C, 0x13D, 0x13E)
AXES: Final = {0: STICK, 1: STICK, 2: TRIGGER, 3: STICK, 4: STICK, 5: TRIGGER, 16: HAT, 17: HAT}
"""What a usual gamepad has: Documentation/input/gamepad.rst of the kernel, with triggers as most drivers have them."""


class SimGamepad:
    """One gamepad, plugged in or not. What a driver opens is this object too."""

    def __init__(
        self,
        identity: ControlsIdentity,
        hotplug: Hotplug,
        *,
        keys: Iterable[int] = KEYS,
        axes: Mapping[int, AxisRange] = AXES,
    ) -> None:
        self.identity = identity
        self.keys = frozenset(keys)
        self.axes: Mapping[int, AxisRange] = dict(axes)
        self.plugged = False
        self.grabbed = False
        self._hotplug = hotplug
        self._values: dict[tuple[bool, int], int] = {}
        self._reports: deque[ControlReport] = deque()
        self._news = trio.Event()
        self._rest()

    def _rest(self) -> None:
        keys = {(True, key): 0 for key in self.keys}
        self._values = keys | {(False, axis): max(0, span.minimum) for axis, span in self.axes.items()}

    def plug(self) -> None:
        """Connect it, everything at rest."""
        if not self.plugged:
            self.plugged = True
            self._rest()
            self._reports.clear()
            self._tell("add")

    def unplug(self) -> None:
        """Disconnect it."""
        if self.plugged:
            self.plugged = False
            self._news.set()
            self._tell("remove")

    def _tell(self, action: str) -> None:
        name = self.identity.path.rpartition("/")[2]
        (self._hotplug.added if action == "add" else self._hotplug.removed)("input", name, self.identity.path)

    def move(self, axis: int, value: int) -> None:
        """Move an axis, in the numbers of its range."""
        self.report(ControlChange(False, axis, value))

    def press(self, key: int, value: int = 1) -> None:
        """Press a key (1), let it go (0), or go on holding it (2)."""
        self.report(ControlChange(True, key, value))

    def report(self, *changes: ControlChange) -> None:
        """Several changes at one moment."""
        self._values.update({(change.key, change.code): change.value for change in changes})
        self._reports.append(ControlReport(datetime.now(UTC).timestamp(), changes))
        self._news.set()

    def state(self) -> tuple[ControlChange, ...]:
        """Every key and axis as it is now."""
        return tuple(ControlChange(key, code, value) for (key, code), value in self._values.items())

    def __aiter__(self) -> AsyncIterator[ControlReport]:
        return self

    async def __anext__(self) -> ControlReport:
        await trio.lowlevel.checkpoint()
        while True:
            if not self.plugged:
                raise system_error(self.identity.path, Fault.GONE)
            if self._reports:
                return self._reports.popleft()
            self._news = trio.Event()
            await self._news.wait()


@asynccontextmanager
async def open_controls(
    gamepads: Iterable[SimGamepad], wanted: ControlsIdentity, *, grab: bool = False
) -> AsyncIterator[Controls]:
    """The one that fits, and is plugged in."""
    await trio.lowlevel.checkpoint()
    for gamepad in gamepads:
        path = gamepad.identity.path
        if gamepad.plugged and (wanted.path == path if wanted.path else wanted.fits(gamepad.identity)):
            gamepad.grabbed = grab
            gamepad._reports.clear()
            try:
                yield gamepad
            finally:
                gamepad.grabbed = False
            return
    raise system_error(str(wanted), Fault.GONE)

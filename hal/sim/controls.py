"""A simulated gamepad, whose keys and axes are moved by tests or a person."""

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
"""The axes of a typical gamepad: the kernel's Documentation/input/gamepad.rst, with triggers as in most drivers."""


class SimGamepad:
    """A gamepad, which may be plugged in or not. It also implements the port that a driver opens."""

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
        self._event = trio.Event()
        self._rest()

    def _rest(self) -> None:
        keys = {(True, key): 0 for key in self.keys}
        self._values = keys | {(False, axis): max(0, span.minimum) for axis, span in self.axes.items()}

    def plug(self) -> None:
        """Connect the gamepad with all controls at rest."""
        if not self.plugged:
            self.plugged = True
            self._rest()
            self._reports.clear()
            self._announce("add")

    def unplug(self) -> None:
        """Disconnect the gamepad."""
        if self.plugged:
            self.plugged = False
            self._event.set()
            self._announce("remove")

    def _announce(self, action: str) -> None:
        name = self.identity.path.rpartition("/")[2]
        (self._hotplug.added if action == "add" else self._hotplug.removed)("input", name, self.identity.path)

    def move(self, axis: int, value: int) -> None:
        """Move an axis to a value of its range."""
        self.report(ControlChange(False, axis, value))

    def press(self, key: int, value: int = 1) -> None:
        """Press a key (1), release it (0), or keep it pressed (2)."""
        self.report(ControlChange(True, key, value))

    def report(self, *changes: ControlChange) -> None:
        """Report several changes at the same moment."""
        self._values.update({(change.key, change.code): change.value for change in changes})
        self._reports.append(ControlReport(datetime.now(UTC).timestamp(), changes))
        self._event.set()

    def state(self) -> tuple[ControlChange, ...]:
        """Return the current values of all keys and axes."""
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
            self._event = trio.Event()
            await self._event.wait()


@asynccontextmanager
async def open_controls(
    gamepads: Iterable[SimGamepad], selector: ControlsIdentity, *, grab: bool = False
) -> AsyncIterator[Controls]:
    """Open the connected gamepad that matches."""
    await trio.lowlevel.checkpoint()
    for gamepad in gamepads:
        path = gamepad.identity.path
        if gamepad.plugged and (selector.path == path if selector.path else selector.fits(gamepad.identity)):
            gamepad.grabbed = grab
            gamepad._reports.clear()
            try:
                yield gamepad
            finally:
                gamepad.grabbed = False
            return
    raise system_error(str(selector), Fault.GONE)

"""Switches of radios: /dev/rfkill, whose events have the form of linux/rfkill.h."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final, Literal

import trio

DEVICE: Final = Path("/dev/rfkill")
_EVENT: Final = struct.Struct("=IBBBB")  # index, type, operation, soft block, hard block
_READ: Final = 64  # bytes; newer kernels append fields to an event, and return one event for each read
_WLAN: Final = 1
_ADD, _DEL, _CHANGE = 0, 1, 2
_NAMES: Final = Path("/sys/class/rfkill")

Blocked = Literal["", "soft", "hard"]


class Switches:
    """Blocks of wifi radios, by wiphy. Close it, or use it as a context manager.

    Opens the device, if the kernel has it; raises PermissionError without root.
    """

    def __init__(self, device: Path = DEVICE, names: Path = _NAMES) -> None:
        self._names = names
        self._radios: dict[int, int] = {}  # number of the switch -> wiphy
        self._blocked: dict[int, Blocked] = {}  # by wiphy
        try:
            self._file: int | None = os.open(device, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            self._file = None
            return
        self._read_all()

    def __enter__(self) -> Switches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the device."""
        if self._file is not None:
            trio.lowlevel.notify_closing(self._file)
            os.close(self._file)
            self._file = None

    def blocked(self, wiphy: int) -> Blocked:
        """Return how a radio is blocked; empty also if the kernel knows no switch for it."""
        return self._blocked.get(wiphy, "")

    def unblock(self, wiphy: int) -> None:
        """Remove the soft block of a radio. A hard block is a switch of the computer, which software cannot change."""
        for number, radio in self._radios.items():
            if radio == wiphy and self._file is not None:
                os.write(self._file, _EVENT.pack(number, _WLAN, _CHANGE, 0, 0))

    async def wait(self) -> None:
        """Wait until a switch has changed since the last call. Never returns if the kernel has no switches."""
        if self._file is None:
            await trio.sleep_forever()
        else:
            await trio.lowlevel.wait_readable(self._file)
            self._read_all()

    def _read_all(self) -> None:
        while self._file is not None:
            try:
                data = os.read(self._file, _READ)
            except BlockingIOError:
                return
            if len(data) < _EVENT.size:
                return
            self._note(*_EVENT.unpack_from(data))

    def _note(self, number: int, kind: int, operation: int, soft: int, hard: int) -> None:
        if kind != _WLAN:
            return
        if operation == _DEL:
            self._blocked.pop(self._radios.pop(number, -1), None)
            return
        wiphy = self._radios.get(number)
        if wiphy is None:
            wiphy = self._wiphy(number)
            if wiphy is None:
                return
            self._radios[number] = wiphy
        self._blocked[wiphy] = "hard" if hard else "soft" if soft else ""

    def _wiphy(self, number: int) -> int | None:
        """Return the radio of a switch. Switches of the computer as a whole have none."""
        try:
            name = (self._names / f"rfkill{number}" / "name").read_text().strip()
        except OSError:
            return None
        return int(name.removeprefix("phy")) if name.removeprefix("phy").isdecimal() else None

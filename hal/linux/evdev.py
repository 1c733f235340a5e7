"""Gamepads and the like by the input subsystem's event devices: a descriptor, waited for in Trio."""

from __future__ import annotations

import fcntl
import os
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from hal.errors import Fault, HalError
from hal.linux import evdev_codec as codec
from hal.ports.controls import AxisRange, ControlChange, ControlReport, Controls, ControlsIdentity

ROOT: Final = Path("/")
GROUP: Final = "input"  # whose members may read event devices
_TEXT: Final = 256  # bytes of a name, at most
_BATCH: Final = 64 * codec.EVENT.size  # bytes taken in one read


def find_controls(wanted: ControlsIdentity, root: Path = ROOT) -> ControlsIdentity:
    """The device that fits, the one that came first if several do; HalError (gone) that names what is there.

    A device is found by what it says of itself only if it has buttons of a gamepad or joystick, or was asked for by
    name: the same thing often has a keyboard and a motion sensor besides.
    """
    found = list(_gamepads(wanted, root))
    for identity, is_gamepad in found:
        if wanted.fits(identity) and (is_gamepad or wanted.name):
            return identity
    there = ", ".join(f"{identity.path} {identity.name!r}" for identity, is_gamepad in found if is_gamepad)
    raise HalError(
        f"no input device is {wanted}; there are {there or 'no gamepads'}",
        Fault.GONE,
        remedy="plug it in or switch it on, or correct name and numbers",
    )


def _gamepads(wanted: ControlsIdentity, root: Path) -> list[tuple[ControlsIdentity, bool]]:
    found = []
    for place in (root / "sys/class/input").glob("event*"):
        device = place / "device"
        vendor, product = _text(device / "id/vendor"), _text(device / "id/product")
        identity = ControlsIdentity(
            f"/dev/input/{place.name}",
            _text(device / "name"),
            int(vendor or "0", 16),
            int(product or "0", 16),
            _text(device / "uniq"),
        )
        keys = codec.sysfs_codes(_text(device / "capabilities/key"))
        is_gamepad = any(key in codec.BTN_GAMEPAD or key in codec.BTN_JOYSTICK for key in keys)
        found.append((int(place.name.removeprefix("event")), identity, is_gamepad))
    return [(identity, is_gamepad) for _, identity, is_gamepad in sorted(found, key=lambda entry: entry[0])]


@asynccontextmanager
async def open_controls(wanted: ControlsIdentity, *, grab: bool = False, root: Path = ROOT) -> AsyncIterator[Controls]:
    """The device at `wanted.path`, or the one that fits otherwise."""
    await trio.lowlevel.checkpoint()
    path = wanted.path or str(root / find_controls(wanted, root).path.lstrip("/"))
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise HalError.of(error, path, group=GROUP) from error
    try:
        try:
            if grab:
                fcntl.ioctl(fd, codec.EVIOCGRAB, 1)
            device = EventDevice(fd, path)
        except OSError as error:
            raise HalError.of(error, path, group=GROUP) from error
        yield device
    finally:
        trio.lowlevel.notify_closing(fd)
        os.close(fd)


class EventDevice:
    """One open event device; whoever opened the descriptor closes it."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        self._batches = codec.Batches()
        self._ready: deque[codec.Batch] = deque()
        _, vendor, product, _ = codec.ID.unpack(self._ask(codec.EVIOCGID, codec.ID.size))
        self.identity = ControlsIdentity(
            path, self._words(codec.eviocgname(_TEXT)), vendor, product, self._words(codec.eviocguniq(_TEXT))
        )
        self.keys = self._codes(codec.EV_KEY, codec.KEY_COUNT)
        self.axes: Mapping[int, AxisRange] = {
            axis: AxisRange(info.minimum, info.maximum, info.flat)
            for axis in sorted(self._codes(codec.EV_ABS, codec.ABS_COUNT))
            for info in (self._axis(axis),)
        }
        self._known = {(change.key, change.code): change.value for change in self.state()}

    def _ask(self, request: int, size: int) -> bytes:
        buffer = bytearray(size)
        fcntl.ioctl(self._fd, request, buffer)
        return bytes(buffer)

    def _codes(self, kind: int, count: int) -> frozenset[int]:
        return codec.codes(self._ask(codec.eviocgbit(kind, count // 8), count // 8))

    def _words(self, request: int) -> str:
        try:
            return self._ask(request, _TEXT).split(b"\0")[0].decode(errors="replace")
        except FileNotFoundError:  # it has none
            return ""

    def _axis(self, axis: int) -> codec.AbsInfo:
        return codec.AbsInfo._make(codec.ABSINFO.unpack(self._ask(codec.eviocgabs(axis), codec.ABSINFO.size)))

    def state(self) -> tuple[ControlChange, ...]:
        """Every key and axis as it is now."""
        try:
            size = codec.KEY_COUNT // 8
            pressed = codec.codes(self._ask(codec.eviocgkey(size), size))
            values = [ControlChange(False, axis, self._axis(axis).value) for axis in self.axes]
        except OSError as error:
            raise HalError.of(error, self._path) from error
        return (*(ControlChange(True, key, int(key in pressed)) for key in sorted(self.keys)), *values)

    def __aiter__(self) -> AsyncIterator[ControlReport]:
        return self

    async def __anext__(self) -> ControlReport:
        await trio.lowlevel.checkpoint()
        while True:
            while self._ready:
                batch = self._ready.popleft()
                changes = self._different() if batch.overflow else self._changes(batch)
                if changes:
                    return ControlReport(batch.time, changes)
            try:
                self._ready.extend(self._batches.feed(os.read(self._fd, _BATCH)))
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._fd)
            except OSError as error:
                raise HalError.of(error, self._path) from error

    def _changes(self, batch: codec.Batch) -> tuple[ControlChange, ...]:
        changes = tuple(
            ControlChange(event.type == codec.EV_KEY, event.code, event.value)
            for event in batch.events
            if event.type in (codec.EV_KEY, codec.EV_ABS)
        )
        for change in changes:
            self._known[change.key, change.code] = min(change.value, 1) if change.key else change.value
        return changes

    def _different(self) -> tuple[ControlChange, ...]:
        """What is not as it was reported. What happened in between is in the state and may be told a second time."""
        changes = tuple(c for c in self.state() if self._known.get((c.key, c.code), 0) != c.value)
        self._known.update({(change.key, change.code): change.value for change in changes})
        return changes


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""

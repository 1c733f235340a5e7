"""Gamepads and similar controls, through event devices of the Linux input subsystem."""

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
GROUP: Final = "input"  # the group with access to event devices
_TEXT: Final = 256  # maximum bytes of a name
_BATCH: Final = 64 * codec.EVENT.size  # maximum bytes of one read


def find_controls(selector: ControlsIdentity, root: Path = ROOT) -> ControlsIdentity:
    """Return the device that matches, the oldest one if several do; HalError (gone) lists the devices if none does.

    Unless it is selected by name, a device must have buttons of a gamepad or joystick, because a gamepad often has
    additional devices such as a keyboard and a motion sensor.
    """
    devices = list(_input_devices(root))
    for identity, is_gamepad in devices:
        if selector.fits(identity) and (is_gamepad or selector.name):
            return identity
    present = ", ".join(f"{identity.path} {identity.name!r}" for identity, is_gamepad in devices if is_gamepad)
    raise HalError(
        f"no input device is {selector}; there are {present or 'no gamepads'}",
        Fault.GONE,
        remedy="plug it in or switch it on, or correct name and numbers",
    )


def _input_devices(root: Path) -> list[tuple[ControlsIdentity, bool]]:
    devices = []
    for entry in (root / "sys/class/input").glob("event*"):
        device = entry / "device"
        vendor, product = _text(device / "id/vendor"), _text(device / "id/product")
        identity = ControlsIdentity(
            f"/dev/input/{entry.name}",
            _text(device / "name"),
            int(vendor or "0", 16),
            int(product or "0", 16),
            _text(device / "uniq"),
        )
        keys = codec.sysfs_codes(_text(device / "capabilities/key"))
        is_gamepad = any(key in codec.BTN_GAMEPAD or key in codec.BTN_JOYSTICK for key in keys)
        devices.append((int(entry.name.removeprefix("event")), identity, is_gamepad))
    return [(identity, is_gamepad) for _, identity, is_gamepad in sorted(devices, key=lambda device: device[0])]


@asynccontextmanager
async def open_controls(
    selector: ControlsIdentity, *, grab: bool = False, root: Path = ROOT
) -> AsyncIterator[Controls]:
    """Open the device at the path of the identity, or else the one that matches it."""
    await trio.lowlevel.checkpoint()
    path = selector.path or str(root / find_controls(selector, root).path.lstrip("/"))
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
    """An open event device. It does not own the descriptor."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        self._batches = codec.Batches()
        self._ready: deque[codec.Batch] = deque()
        _, vendor, product, _ = codec.ID.unpack(self._ask(codec.EVIOCGID, codec.ID.size))
        self.identity = ControlsIdentity(
            path, self._text(codec.eviocgname(_TEXT)), vendor, product, self._text(codec.eviocguniq(_TEXT))
        )
        self.keys = self._codes(codec.EV_KEY, codec.KEY_COUNT)
        self.axes: Mapping[int, AxisRange] = {
            axis: AxisRange(info.minimum, info.maximum, info.flat)
            for axis in sorted(self._codes(codec.EV_ABS, codec.ABS_COUNT))
            for info in (self._axis(axis),)
        }
        self._reported = {(change.key, change.code): change.value for change in self.state()}

    def _ask(self, request: int, size: int) -> bytes:
        buffer = bytearray(size)
        fcntl.ioctl(self._fd, request, buffer)
        return bytes(buffer)

    def _codes(self, kind: int, count: int) -> frozenset[int]:
        return codec.codes(self._ask(codec.eviocgbit(kind, count // 8), count // 8))

    def _text(self, request: int) -> str:
        try:
            return self._ask(request, _TEXT).split(b"\0")[0].decode(errors="replace")
        except FileNotFoundError:  # the device has no such text
            return ""

    def _axis(self, axis: int) -> codec.AbsInfo:
        return codec.AbsInfo._make(codec.ABSINFO.unpack(self._ask(codec.eviocgabs(axis), codec.ABSINFO.size)))

    def state(self) -> tuple[ControlChange, ...]:
        """Return the current state of every key and axis."""
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
            self._reported[change.key, change.code] = min(change.value, 1) if change.key else change.value
        return changes

    def _different(self) -> tuple[ControlChange, ...]:
        """Return the state that differs from the reported one. Later events may repeat a part of it."""
        changes = tuple(c for c in self.state() if self._reported.get((c.key, c.code), 0) != c.value)
        self._reported.update({(change.key, change.code): change.value for change in changes})
        return changes


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""

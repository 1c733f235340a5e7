"""A simulated gamepad: a uinput device, which the input subsystem treats as any other device."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from tests.hil.guest.uevents import wait_until

# From linux/uinput.h
SET_EVBIT, SET_KEYBIT = 0x40045564, 0x40045565
DEV_SETUP, ABS_SETUP = 0x405C5503, 0x401C5504
DEV_CREATE, DEV_DESTROY = 0x5501, 0x5502
GET_SYSNAME = 0x8040552C  # of 64 bytes
EV_SYN, EV_KEY, EV_ABS = 0, 1, 3
USB = 3

KEYS = (0x130, 0x131, 0x133, 0x134, 0x136, 0x137, 0x13A, 0x13B, 0x13C, 0x13D, 0x13E)
AXES = {
    0: (-32768, 32767, 128),
    1: (-32768, 32767, 128),
    2: (0, 255, 0),
    3: (-32768, 32767, 128),
    4: (-32768, 32767, 128),
    5: (0, 255, 0),
    16: (-1, 1, 0),
    17: (-1, 1, 0),
}
"""The axes of an Xbox pad: minimum, maximum, flat."""


class Gamepad:
    """A gamepad: `plug` connects it, `unplug` disconnects it, `emit` presses buttons and moves sticks."""

    def __init__(self, name: str = "Rig Gamepad", vendor: int = 0x045E, product: int = 0x028E) -> None:
        self.name, self.vendor, self.product = name, vendor, product
        self._fd = -1

    async def plug(self) -> str:
        """Plug it in; return the path of its event device after udev has processed it."""
        fd = self._fd = os.open("/dev/uinput", os.O_WRONLY | os.O_NONBLOCK)
        for kind in (EV_KEY, EV_ABS):
            fcntl.ioctl(fd, SET_EVBIT, kind)
        for key in KEYS:
            fcntl.ioctl(fd, SET_KEYBIT, key)
        for axis, (least, greatest, flat) in AXES.items():
            fcntl.ioctl(fd, ABS_SETUP, struct.pack("@H2x6i", axis, 0, least, greatest, 0, flat, 0))
        who = struct.pack("@4H80sI", USB, self.vendor, self.product, 1, self.name.encode(), 0)
        fcntl.ioctl(fd, DEV_SETUP, who)
        fcntl.ioctl(fd, DEV_CREATE)
        system = fcntl.ioctl(fd, GET_SYSNAME, bytes(64)).split(b"\0")[0].decode()
        place = Path("/sys/devices/virtual/input") / system
        return await wait_until(lambda: next((f"/dev/input/{p.name}" for p in place.glob("event*")), ""))

    def emit(self, *reports: list[list[int]], times: int = 1) -> None:
        """Emit reports, each a list of [type, code, value] with the same time."""
        once = b"".join(
            b"".join(struct.pack("@LLHHi", 0, 0, *change) for change in [*report, [EV_SYN, 0, 0]]) for report in reports
        )
        for _ in range(times):
            os.write(self._fd, once)

    def unplug(self) -> None:
        """Unplug it at once."""
        if self._fd >= 0:
            fcntl.ioctl(self._fd, DEV_DESTROY)
            os.close(self._fd)
            self._fd = -1

    close = unplug

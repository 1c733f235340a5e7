"""A gamepad of uinput, for as long as this program runs: `python3 -m tests.hil.guest.gamepad "Rig Pad"`.

The numbers are those of linux/uinput.h and linux/input-event-codes.h.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time

UI_DEV_CREATE, UI_DEV_SETUP, UI_ABS_SETUP = 0x5501, 0x405C5503, 0x401C5504
UI_SET_EVBIT, UI_SET_KEYBIT = 0x40045564, 0x40045565
EV_KEY, EV_ABS = 0x01, 0x03
BTN_SOUTH, BTN_EAST = 0x130, 0x131
ABS_X, ABS_Y = 0x00, 0x01
BUS_USB = 0x03


def main() -> None:
    """Make it, say so, and wait to be ended."""
    pad = os.open("/dev/uinput", os.O_RDWR)
    fcntl.ioctl(pad, UI_SET_EVBIT, EV_KEY)
    for button in (BTN_SOUTH, BTN_EAST):
        fcntl.ioctl(pad, UI_SET_KEYBIT, button)
    for axis in (ABS_X, ABS_Y):
        fcntl.ioctl(pad, UI_ABS_SETUP, struct.pack("HxxIiiiii", axis, 0, -32768, 32767, 16, 128, 0)[:28])
    name = sys.argv[1].encode()
    fcntl.ioctl(pad, UI_DEV_SETUP, struct.pack("HHHH80sI", BUS_USB, 0x1209, 0x0001, 1, name, 0))
    fcntl.ioctl(pad, UI_DEV_CREATE)
    print("ready", flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()

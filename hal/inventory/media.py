"""Cameras and input devices, from sysfs and udev's links."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from hal.inventory.findings import CameraFinding, InputFinding
from hal.inventory.sysfs import MACHINE, ROOT, entries, links, text

# linux/input-event-codes.h
_EV_KEY: Final = 0x01
_EV_REL: Final = 0x02
_EV_ABS: Final = 0x03
_BTN_MOUSE: Final = 0x110
_BTN_JOYSTICK: Final = 0x120
_BTN_GAMEPAD: Final = 0x130
_KEY_A: Final = 30

_WORD: Final = struct.calcsize("P") * 8  # bits in each word of a bitmap in sysfs: those of the kernel's unsigned long


def cameras(root: Path = ROOT) -> tuple[CameraFinding, ...]:
    """Return all cameras; of several nodes of a device only the first, which is the one with the images."""
    stable = links(root, ["dev/v4l/by-id", "dev/v4l/by-path", f"{MACHINE}/video"])
    return tuple(
        CameraFinding(f"/dev/{node.name}", text(node / "name"), stable.get(node.name, ()))
        for node in entries(root / "sys/class/video4linux", "video*")
        if text(node / "index") in ("", "0")
    )


def input_devices(root: Path = ROOT) -> tuple[InputFinding, ...]:
    """Return all input devices that report events."""
    stable = links(root, ["dev/input/by-id", "dev/input/by-path", f"{MACHINE}/input"])
    return tuple(
        InputFinding(
            f"/dev/input/{node.name}", text(node / "device/name"), kind(node / "device"), stable.get(node.name, ())
        )
        for node in entries(root / "sys/class/input", "event*")
    )


def kind(device: Path) -> str:
    """Return gamepad, mouse, keyboard or other, by the events that the device can send."""
    events, keys = bits(text(device / "capabilities/ev")), bits(text(device / "capabilities/key"))
    if events >> _EV_ABS & 1 and (keys >> _BTN_GAMEPAD & 1 or keys >> _BTN_JOYSTICK & 1):
        return "gamepad"
    if events >> _EV_REL & 1 and keys >> _BTN_MOUSE & 1:
        return "mouse"
    return "keyboard" if events >> _EV_KEY & 1 and keys >> _KEY_A & 1 else "other"


def bits(words: str) -> int:
    """Parse a bitmap in the format of sysfs: hexadecimal words, the most significant first."""
    value = 0
    for word in words.split():
        value = value << _WORD | int(word, 16)
    return value

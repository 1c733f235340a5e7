"""The lines to which a PWM chip is connected, according to the device tree.

A channel can be routed to several pins by the pin multiplexer. Only root can read the multiplexer itself, but all users
can read the device tree, by which the kernel has configured it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_CELL: Final = 4  # bytes of a number in a device tree (Devicetree Specification, section 2.2.4)


def routed(device: str, root: Path) -> frozenset[int] | None:
    """Return the offsets of the lines that carry channels of the platform device `device`; None if they are not stated.

    They are found through `pinctrl-0` of its node and, in the nodes that it refers to, `brcm,pins` (pinctrl-bcm2835) or
    `pins` with names like `gpio12` (pinctrl-rp1).
    """
    node = root / "sys/bus/platform/devices" / device / "of_node"
    handles = _cells(node / "pinctrl-0")
    if not handles:
        return None
    lines: set[int] = set()
    for controller in (root / "sys/bus/gpio/devices").glob("gpiochip*/of_node"):
        for handle in controller.glob("*/phandle"):
            if set(handles).intersection(_cells(handle)):
                lines |= _lines(handle.parent)
    return frozenset(lines) or None


def _lines(node: Path) -> set[int]:
    """Return the lines of a pin controller node and of the groups in it."""
    lines: set[int] = set()
    for group in (node, *(entry for entry in node.glob("*") if entry.is_dir())):
        lines.update(_cells(group / "brcm,pins"))
        for name in _text(group / "pins").split("\0"):
            if name.startswith("gpio") and name[4:].isdigit():
                lines.add(int(name[4:]))
    return lines


def _cells(file: Path) -> list[int]:
    try:
        data = file.read_bytes()
    except OSError:
        return []
    return [int.from_bytes(data[at : at + _CELL], "big") for at in range(0, len(data) - len(data) % _CELL, _CELL)]


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""

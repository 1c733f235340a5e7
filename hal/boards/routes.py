"""Which lines a PWM chip is connected to now, as the device tree says.

A channel can reach several pins, and the pin multiplexer decides which one carries it. The multiplexer itself is
readable for root only; the device tree, from which the kernel set it, is readable for everybody.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_CELL: Final = 4  # bytes of a number in a device tree (Devicetree Specification, section 2.2.4)


def routed(device: str, root: Path) -> frozenset[int] | None:
    """Offsets of the lines that carry channels of the platform device `device`; None if nothing is said about it.

    Read are `pinctrl-0` of its node and, in the nodes that this names, `brcm,pins` (pinctrl-bcm2835) or `pins` with
    names like `gpio12` (pinctrl-rp1).
    """
    node = root / "sys/bus/platform/devices" / device / "of_node"
    handles = _cells(node / "pinctrl-0")
    if not handles:
        return None
    wanted = set(handles)
    lines: set[int] = set()
    for controller in (root / "sys/bus/gpio/devices").glob("gpiochip*/of_node"):
        for handle in controller.glob("*/phandle"):
            if wanted.intersection(_cells(handle)):
                lines |= _lines(handle.parent)
    return frozenset(lines) or None


def _lines(node: Path) -> set[int]:
    """Lines of a node of the pin controller and of the groups in it."""
    found: set[int] = set()
    for group in (node, *(entry for entry in node.glob("*") if entry.is_dir())):
        found.update(_cells(group / "brcm,pins"))
        for name in _text(group / "pins").split("\0"):
            if name.startswith("gpio") and name[4:].isdigit():
                found.add(int(name[4:]))
    return found


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

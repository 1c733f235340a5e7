"""Detect the board from the device tree, and adapt its definition to the running kernel by sysfs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hal.boards.catalogue import compatible, named
from hal.boards.definition import BoardDefinition, BoardPin
from hal.boards.routes import routed
from hal.ports.digital import Line

ROOT: Final = Path("/")
GENERIC: Final = "generic"


@dataclass(frozen=True, slots=True)
class DeviceTree:
    """The identity of this computer according to its device tree; empty if there is none, as on a PC."""

    model: str = ""
    compatible: tuple[str, ...] = ()


def device_tree(root: Path = ROOT) -> DeviceTree:
    """Read the model and the `compatible` strings of the board."""
    folder = root / "proc/device-tree"
    names = _property(folder / "compatible").decode(errors="replace").split("\0")
    model = _property(folder / "model").decode(errors="replace").rstrip("\0")
    return DeviceTree(model, tuple(name for name in names if name))


def find_board(name: str = "", root: Path = ROOT) -> BoardDefinition:
    """Return the board `name`, by default that of this computer; `generic` if this computer's board is not defined.

    The pins of a generic board are the lines of its GPIO chips. MachineError (NOT_FOUND) for an unknown name.
    """
    if name.strip().lower() == GENERIC:
        return generic(root)
    detected = compatible(device_tree(root).compatible)
    board = named(name) if name else detected
    if board is None:
        return generic(root)
    return placed(board, root) if board is detected else board


def generic(root: Path = ROOT) -> BoardDefinition:
    """Return a board without a header; pins are named `gpiochip0:4`, or with the chip's label, or by the kernel."""
    from hal.inventory.gpio import gpio_chips

    pins: list[BoardPin] = []
    taken: set[str] = set()
    for chip in gpio_chips(root):
        for line in chip.lines:
            names = [f"{chip.name}:{line.offset}", f"{chip.label}:{line.offset}", line.name]
            unique = [name for name in dict.fromkeys(names) if name and name.lower() not in taken]
            taken.update(name.lower() for name in unique)
            pins.append(BoardPin(tuple(unique), Line(chip.name, line.offset), note=chip.label))
    title = device_tree(root).model or "generic computer"
    return BoardDefinition(GENERIC, title, pins=tuple(pins))


def placed(board: BoardDefinition, root: Path = ROOT) -> BoardDefinition:
    """Adapt `board` to the running kernel: replace device names of chips, drop PWM channels not routed to their pin."""
    pins = board.pins
    for device in sorted({pin.line.chip for pin in pins if pin.line is not None and "." in pin.line.chip}):
        if chip := _chip_of(device, root):
            pins = tuple(
                replace(pin, line=Line(chip, pin.line.offset)) if pin.line and pin.line.chip == device else pin
                for pin in pins
            )
    return replace(board, pins=tuple(_routed_pins(pins, root)))


def _routed_pins(pins: tuple[BoardPin, ...], root: Path) -> Iterator[BoardPin]:
    routes = {chip: routed(chip, root) for chip in {pin.pwm.chip for pin in pins if pin.pwm is not None}}
    for pin in pins:
        lines = routes[pin.pwm.chip] if pin.pwm is not None else None
        if lines is None or (pin.line is not None and pin.line.offset in lines):
            yield pin
        else:
            yield replace(pin, pwm=None)


def _chip_of(device: str, root: Path) -> str | None:
    """Return the GPIO chip, such as `gpiochip1`, of the platform device `device`, such as `4804c000.gpio`."""
    for chip in sorted((root / "sys/bus/gpio/devices").glob("gpiochip*")):
        if device in Path(os.path.realpath(chip)).parts:
            return chip.name
    return None


def _property(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""

"""Which board this computer is, and what its tables mean on it: the device tree, then sysfs."""

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
    """What the firmware says this computer is; empty where there is no device tree, as on a PC."""

    model: str = ""
    compatible: tuple[str, ...] = ()


def device_tree(root: Path = ROOT) -> DeviceTree:
    """Read the two properties that name the board."""
    folder = root / "proc/device-tree"
    names = _property(folder / "compatible").decode(errors="replace").split("\0")
    model = _property(folder / "model").decode(errors="replace").rstrip("\0")
    return DeviceTree(model, tuple(name for name in names if name))


def find_board(name: str = "", root: Path = ROOT) -> BoardDefinition:
    """The board called `name`, or the one this computer is; a computer that no table knows is `generic`.

    A generic board has the lines of its GPIO chips as pins. MachineError (NOT_FOUND) with near names for a wrong one.
    """
    if name.strip().lower() == GENERIC:
        return generic(root)
    this = compatible(device_tree(root).compatible)
    board = named(name) if name else this
    if board is None:
        return generic(root)
    return placed(board, root) if board is this else board


def generic(root: Path = ROOT) -> BoardDefinition:
    """A board without a header: lines are called `gpiochip0:4`, or by the chip's label, or by the kernel's name."""
    from hal.inventory.gpio import gpio_chips

    pins: list[BoardPin] = []
    taken: set[str] = set()
    for chip in gpio_chips(root):
        for line in chip.lines:
            names = [f"{chip.name}:{line.offset}", f"{chip.label}:{line.offset}", line.name]
            own = [known for known in dict.fromkeys(names) if known and known.lower() not in taken]
            taken.update(known.lower() for known in own)
            pins.append(BoardPin(tuple(own), Line(chip.name, line.offset), note=chip.label))
    title = device_tree(root).model or "generic computer"
    return BoardDefinition(GENERIC, title, pins=tuple(pins))


def placed(board: BoardDefinition, root: Path = ROOT) -> BoardDefinition:
    """`board` as this computer has it: chips under names of the running kernel, PWM only where a pin carries it."""
    pins = board.pins
    for device in sorted({pin.line.chip for pin in pins if pin.line is not None and "." in pin.line.chip}):
        if chip := _chip_of(device, root):
            pins = tuple(
                replace(pin, line=Line(chip, pin.line.offset)) if pin.line and pin.line.chip == device else pin
                for pin in pins
            )
    return replace(board, pins=tuple(_carried(pins, root)))


def _carried(pins: tuple[BoardPin, ...], root: Path) -> Iterator[BoardPin]:
    routes = {chip: routed(chip, root) for chip in {pin.pwm.chip for pin in pins if pin.pwm is not None}}
    for pin in pins:
        lines = routes[pin.pwm.chip] if pin.pwm is not None else None
        if lines is None or (pin.line is not None and pin.line.offset in lines):
            yield pin
        else:
            yield replace(pin, pwm=None)


def _chip_of(device: str, root: Path) -> str | None:
    """`gpiochip1` of the platform device `4804c000.gpio`."""
    for chip in sorted((root / "sys/bus/gpio/devices").glob("gpiochip*")):
        if device in Path(os.path.realpath(chip)).parts:
            return chip.name
    return None


def _property(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""

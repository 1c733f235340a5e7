"""GPIO chips and their lines, from the kernel's character devices."""

from __future__ import annotations

from pathlib import Path

from hal.inventory.findings import GpioChip, GpioLine
from hal.inventory.sysfs import ROOT, entries, number, text


def gpio_chips(root: Path = ROOT) -> tuple[GpioChip, ...]:
    """Return all chips in the order of their numbers; lines only for chips that this user may open."""
    return tuple(_chip(root, entry.name) for entry in entries(root / "sys/bus/gpio/devices", "gpiochip*"))


def _chip(root: Path, name: str) -> GpioChip:
    node = root / "dev" / name
    return _open(node, name) or _from_sysfs(root, name)


def _open(node: Path, name: str) -> GpioChip | None:
    import gpiod

    try:
        with gpiod.Chip(str(node)) as chip:
            info = chip.get_info()
            lines = [chip.get_line_info(offset) for offset in range(info.num_lines)]
    except (OSError, ValueError):
        return None
    return GpioChip(
        name,
        f"/dev/{name}",
        info.label,
        info.num_lines,
        tuple(
            GpioLine(line.offset, line.name or "", line.consumer or "", line.direction is gpiod.line.Direction.OUTPUT)
            for line in lines
        ),
    )


def _from_sysfs(root: Path, name: str) -> GpioChip:
    """Describe a chip that cannot be opened; label and line count are known only with the kernel's old interface."""
    for chip in entries(root / "sys/bus/gpio/devices" / name / "gpio", "gpiochip*"):
        return GpioChip(name, f"/dev/{name}", text(chip / "label"), number(chip / "ngpio") or 0)
    device = root / "sys/bus/gpio/devices" / name
    old = [entry for entry in entries(root / "sys/class/gpio", "gpiochip*") if _same_device(entry, device)]
    if len(old) == 1:
        return GpioChip(name, f"/dev/{name}", text(old[0] / "label"), number(old[0] / "ngpio") or 0)
    return GpioChip(name, f"/dev/{name}", "", 0)


def _same_device(old: Path, chip: Path) -> bool:
    parent = chip.resolve().parent
    return (old / "device").exists() and (old / "device").resolve() in (parent, chip.resolve())

"""`machine hal list` and `machine hal check`: print results as tables, JSON or configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from command.interrupts import run_until_interrupted
from command.output import print_json
from hal.inventory import HardwareProblem, Inventory, find_board, hardware_problems, take_inventory
from hal.linux import LinuxHardware
from models.chips import chips_at
from schema import MachineError
from support.text import terminal


def show(root: Path, *, as_json: bool, as_config: bool, lines: bool, scan: bool) -> None:
    """Print the hardware that was found."""
    hardware, detected = _take_inventory(root, scan)
    if as_config:
        _config(hardware)
    elif as_json:
        print_json({**msgspec.to_builtins(hardware), "problems": msgspec.to_builtins(detected)})
    else:
        for line in report(hardware, lines=lines):
            click.echo(line)
        count = sum(not problem.hint for problem in detected)
        if count:
            click.echo(f"\n{count} problem{'s' if count > 1 else ''}: see machine hal check")


def check(root: Path, *, as_json: bool, scan: bool) -> int:
    """Print the problems. Return 1 if there are any, not counting hints."""
    _, detected = _take_inventory(root, scan)
    if as_json:
        print_json(msgspec.to_builtins(detected))
    else:
        for line in explained(detected):
            click.echo(line)
    return int(any(not problem.hint for problem in detected))


def _take_inventory(root: Path, scan: bool) -> tuple[Inventory, tuple[HardwareProblem, ...]]:
    hardware = LinuxHardware()

    async def main() -> tuple[Inventory, tuple[HardwareProblem, ...]]:
        result = await take_inventory(hardware, scan=scan, root=root, chips_at=chips_at)
        return result, hardware_problems(result, find_board(root=root), root=root)

    try:
        return run_until_interrupted(main)
    except MachineError as error:
        raise click.ClickException(str(error)) from None


def _config(hardware: Inventory) -> None:
    from models import BUILTIN
    from models.discovery import discovered_entries

    candidates = discovered_entries(hardware, BUILTIN)
    components = [entry.document() for entry in candidates if not entry.alternative]
    click.echo(json.dumps({"components": components}, indent=2, ensure_ascii=False))
    for subject in dict.fromkeys(entry.subject for entry in candidates if entry.alternative):
        models = [entry.discovery.model.rpartition(":")[2] for entry in candidates if entry.subject == subject]
        click.echo(f"{subject}: `model` may also be {' or '.join(models[1:])}", err=True)


def explained(detected: Sequence[HardwareProblem]) -> Iterator[str]:
    """Yield lines for problems, then for hints, each followed by a line with the remedy."""
    for problem in sorted(detected, key=lambda problem: problem.hint):
        yield terminal.clean(f"{'hint' if problem.hint else 'problem'}: {problem.subject}: {problem.reason}")
        yield terminal.clean(f"  remedy: {problem.remedy}")
    count = sum(not problem.hint for problem in detected)
    yield f"{count} problem{'s' if count != 1 else ''}" if count else "no problems"


def report(hardware: Inventory, *, lines: bool = False) -> Iterator[str]:
    """Yield the lines of the tables, one table for each kind of hardware that was found."""
    model = f", {hardware.board.model}" if hardware.board.model not in ("", hardware.board.title) else ""
    yield terminal.clean(f"{hardware.board.title} ({hardware.board.name}{model})")
    empty = True
    for head, rows in _tables(hardware, lines):
        if rows:
            empty = False
            yield ""
            yield from terminal.table(head, rows)
    if empty:
        yield "no chip, bus, port or device was found"


def _tables(hardware: Inventory, lines: bool) -> Iterator[tuple[Sequence[str], list[tuple[Any, ...]]]]:
    yield (
        ("GPIO CHIP", "LABEL", "LINES", "IN USE"),
        [
            (chip.name, chip.label, str(chip.count), str(sum(bool(line.used_by) for line in chip.lines)))
            for chip in hardware.gpio
        ],
    )
    if lines:
        yield (
            ("GPIO LINE", "NAME", "DIRECTION", "USED BY"),
            [
                (f"{chip.name}:{line.offset}", line.name, "out" if line.output else "in", line.used_by)
                for chip in hardware.gpio
                for line in chip.lines
            ],
        )
    yield (
        ("I2C BUS", "ADAPTER", "STABLE NAME", "ADDRESSES"),
        [
            (bus.path, bus.name, _first(bus.stable), str(len(bus.devices)) if bus.scanned else "not probed")
            for bus in hardware.i2c
        ],
    )
    yield (
        ("I2C DEVICE", "BUS", "USED BY", "MAY BE"),
        [
            (f"0x{device.address:02x}", bus.path, device.driver, ", ".join(device.likely[:8]))
            for bus in hardware.i2c
            for device in bus.devices
        ],
    )
    yield (
        ("SPI", "PATH", "STABLE NAME", "USED BY"),
        [
            (f"{device.bus}.{device.select}", device.path, _first(device.stable), device.driver)
            for device in hardware.spi
        ],
    )
    yield (
        ("SERIAL PORT", "STABLE NAME", "USB", "SERIAL NUMBER", "DEVICE"),
        [
            (port.path, _first(port.stable), _ids(port.vendor, port.product), port.serial, port.title)
            for port in hardware.serial
        ],
    )
    yield (
        ("USB DEVICE", "SOCKET", "SERIAL NUMBER", "DRIVER", "DEVICE"),
        [
            (
                _ids(device.vendor, device.product),
                device.port,
                device.serial,
                ", ".join(device.drivers) or "none",
                f"{device.manufacturer} {device.title}".strip(),
            )
            for device in hardware.usb
        ],
    )
    yield (
        ("CAMERA", "STABLE NAME", "DEVICE"),
        [(camera.path, _first(camera.stable), camera.name) for camera in hardware.cameras],
    )
    yield (
        ("INPUT DEVICE", "KIND", "STABLE NAME", "DEVICE"),
        [(device.path, device.kind, _first(device.stable), device.name) for device in hardware.inputs],
    )
    yield (
        ("PWM CHIP", "DEVICE", "CHANNELS"),
        [(chip.name, chip.device, str(chip.channels)) for chip in hardware.pwm],
    )
    yield ("1-WIRE DEVICE", "KIND", "PATH"), [(device.id, device.title, device.path) for device in hardware.one_wire]


def _ids(vendor: str, product: str) -> str:
    return f"{vendor}:{product}" if vendor else ""


def _first(stable: Sequence[str]) -> str:
    return stable[0] if stable else ""

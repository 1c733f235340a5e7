"""`machine hal list` and `machine hal check`: print results as tables, JSON or configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import trio

from hal.inventory.board import find_board
from hal.inventory.checks import problems
from hal.inventory.findings import Inventory, Problem
from hal.inventory.inventory import inventory
from hal.linux.hardware import LinuxHardware
from runtime.engine.views import tables
from schema.errors import MachineError


def show(root: Path, *, as_json: bool, as_config: bool, lines: bool, scan: bool) -> None:
    """Print the hardware that was found."""
    found, wrong = _look(root, scan)
    if as_config:
        _config(found)
    elif as_json:
        click.echo(tables.one_line({**msgspec.to_builtins(found), "problems": msgspec.to_builtins(wrong)}))
    else:
        for line in report(found, lines=lines):
            click.echo(line)
        count = sum(not problem.hint for problem in wrong)
        if count:
            click.echo(f"\n{count} problem{'s' if count > 1 else ''} in the way: machine hal check")


def check(root: Path, *, as_json: bool, scan: bool) -> int:
    """Print the problems. Return 1 if there are any, not counting hints."""
    _, wrong = _look(root, scan)
    if as_json:
        click.echo(tables.one_line(msgspec.to_builtins(wrong)))
    else:
        for line in explained(wrong):
            click.echo(line)
    return int(any(not problem.hint for problem in wrong))


def _look(root: Path, scan: bool) -> tuple[Inventory, tuple[Problem, ...]]:
    hardware = LinuxHardware()

    async def main() -> tuple[Inventory, tuple[Problem, ...]]:
        found = await inventory(hardware, scan=scan, root=root)
        return found, problems(found, find_board(root=root), root=root)

    try:
        return trio.run(main)
    except MachineError as error:
        raise click.ClickException(str(error)) from None


def _config(found: Inventory) -> None:
    from runtime.models import BUILTIN
    from runtime.models.discovery.entries import entries

    fitting = entries(found, BUILTIN)
    components = [entry.document() for entry in fitting if not entry.alternative]
    click.echo(json.dumps({"components": components}, indent=2, ensure_ascii=False))
    for subject in dict.fromkeys(entry.subject for entry in fitting if entry.alternative):
        models = [entry.discovery.model.rpartition(":")[2] for entry in fitting if entry.subject == subject]
        click.echo(f"{subject}: `model` may also be {' or '.join(models[1:])}", err=True)


def explained(wrong: Sequence[Problem]) -> Iterator[str]:
    """Yield lines for problems, then for hints, each followed by a line with the remedy."""
    for problem in sorted(wrong, key=lambda one: one.hint):
        yield tables.clean(f"{'hint' if problem.hint else 'problem'}: {problem.subject}: {problem.reason}")
        yield tables.clean(f"  remedy: {problem.remedy}")
    count = sum(not problem.hint for problem in wrong)
    yield f"{count} problem{'s' if count != 1 else ''}" if count else "nothing stands in the way"


def report(found: Inventory, *, lines: bool = False) -> Iterator[str]:
    """Yield the lines of the tables, one table for each kind of hardware that was found."""
    model = f", {found.board.model}" if found.board.model not in ("", found.board.title) else ""
    yield tables.clean(f"{found.board.title} ({found.board.name}{model})")
    empty = True
    for head, rows in _tables(found, lines):
        if rows:
            empty = False
            yield ""
            yield from tables.table(head, rows)
    if empty:
        yield "no chip, bus, port or device was found"


def _tables(found: Inventory, lines: bool) -> Iterator[tuple[Sequence[str], list[tuple[Any, ...]]]]:
    yield (
        ("GPIO CHIP", "LABEL", "LINES", "IN USE"),
        [
            (chip.name, chip.label, str(chip.count), str(sum(bool(line.used_by) for line in chip.lines)))
            for chip in found.gpio
        ],
    )
    if lines:
        yield (
            ("GPIO LINE", "NAME", "DIRECTION", "USED BY"),
            [
                (f"{chip.name}:{line.offset}", line.name, "out" if line.output else "in", line.used_by)
                for chip in found.gpio
                for line in chip.lines
            ],
        )
    yield (
        ("I2C BUS", "ADAPTER", "STABLE NAME", "ADDRESSES"),
        [
            (bus.path, bus.name, _first(bus.stable), str(len(bus.devices)) if bus.scanned else "not asked")
            for bus in found.i2c
        ],
    )
    yield (
        ("I2C DEVICE", "BUS", "USED BY", "MAY BE"),
        [
            (f"0x{device.address:02x}", bus.path, device.driver, ", ".join(device.likely[:8]))
            for bus in found.i2c
            for device in bus.devices
        ],
    )
    yield (
        ("SPI", "PATH", "STABLE NAME", "USED BY"),
        [(f"{one.bus}.{one.select}", one.path, _first(one.stable), one.driver) for one in found.spi],
    )
    yield (
        ("SERIAL PORT", "STABLE NAME", "USB", "SERIAL NUMBER", "DEVICE"),
        [(one.path, _first(one.stable), _ids(one.vendor, one.product), one.serial, one.title) for one in found.serial],
    )
    yield (
        ("USB DEVICE", "SOCKET", "SERIAL NUMBER", "DRIVER", "DEVICE"),
        [
            (
                _ids(one.vendor, one.product),
                one.port,
                one.serial,
                ", ".join(one.drivers) or "none",
                f"{one.manufacturer} {one.title}".strip(),
            )
            for one in found.usb
        ],
    )
    yield (
        ("CAMERA", "STABLE NAME", "DEVICE"),
        [(one.path, _first(one.stable), one.name) for one in found.cameras],
    )
    yield (
        ("INPUT DEVICE", "KIND", "STABLE NAME", "DEVICE"),
        [(one.path, one.kind, _first(one.stable), one.name) for one in found.inputs],
    )
    yield (
        ("PWM CHIP", "DEVICE", "CHANNELS"),
        [(one.name, one.device, str(one.channels)) for one in found.pwm],
    )
    yield ("1-WIRE DEVICE", "KIND", "PATH"), [(one.id, one.title, one.path) for one in found.one_wire]


def _ids(vendor: str, product: str) -> str:
    return f"{vendor}:{product}" if vendor else ""


def _first(stable: Sequence[str]) -> str:
    return stable[0] if stable else ""
